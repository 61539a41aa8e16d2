"""The documents: enough of them, and the ones people look for."""

from __future__ import annotations

import re

import polars as pl
import pytest

from karat.demo import _golden_set
from karat.tables.documents import Documents

# What people look for, under the names they use: re-exports, C functions and built-ins too.
KNOWN = """
argparse.ArgumentParser.add_argument asyncio asyncio.Queue asyncio.gather
asyncio.wait_for builtins collections.Counter.most_common collections.OrderedDict
collections.abc.Mapping collections.defaultdict collections.deque concurrent.futures.Future.result
concurrent.futures.ThreadPoolExecutor copy.deepcopy csv.reader datetime.datetime.now
datetime.datetime.strptime decimal.Decimal dict.setdefault functools.lru_cache functools.partial
getpass.getpass glob.glob hashlib.md5 heapq.nlargest io.StringIO itertools.chain json json.dumps
list.sort logging.getLogger math.floor multiprocessing.Pool multiprocessing.Process
multiprocessing.Queue open os.makedirs os.path.exists os.path.join os.path.splitext os.walk
pathlib.Path pathlib.Path.exists pathlib.Path.glob pathlib.Path.read_text pathlib.PurePath.joinpath
pickle.dumps print queue.PriorityQueue random.choice random.random random.sample re.Match.group
re.Pattern.sub re.sub shutil.rmtree socket.socket.connect sorted sqlite3.connect statistics.median
str.join str.split struct.pack subprocess.Popen.communicate subprocess.run sys.exit tarfile.open
tempfile.TemporaryDirectory threading.Lock threading.Thread time.sleep tomllib.loads
unicodedata.name unittest.TestCase unittest.mock.patch urllib.parse.urlencode
urllib.request.urlopen uuid.uuid4 zipfile.ZipFile
zlib.compress
"""


@pytest.mark.parametrize("doc_id", KNOWN.split())
def test_what_people_look_for_is_there(library: pl.DataFrame, doc_id: str) -> None:
    row = library.row(by_predicate=pl.col("doc_id") == doc_id, named=True)
    assert len(row["text"]) > 10
    assert row["title"].startswith(doc_id)


def test_there_are_several_thousand_each_once(library: pl.DataFrame) -> None:
    assert 4_000 < library.height < 10_000
    assert library["doc_id"].is_unique().all()
    assert library["doc_id"].is_sorted()
    assert library.columns == ["doc_id", "title", "text", "kind", "module"]
    assert set(library["kind"]) == {"module", "class", "function", "method"}
    assert library.null_count().row(0) == (0, 0, 0, 0, 0)
    assert Documents(library).frame.height == library.height


def test_ids_are_public_names_that_any_file_format_can_hold(library: pl.DataFrame) -> None:
    name = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*")
    assert [doc_id for doc_id in library["doc_id"] if not name.fullmatch(doc_id)] == []


def test_left_out_are_tests_editors_and_what_was_removed(library: pl.DataFrame) -> None:
    top = {doc_id.partition(".")[0] for doc_id in library["doc_id"]}
    assert not top & {"test", "idlelib", "lib2to3", "tkinter", "distutils", "posixpath", "cgi"}
    assert not top & {"karat", "polars", "numpy", "pytest", "exit", "copyright"}


def test_every_text_says_something(library: pl.DataFrame) -> None:
    assert library["text"].str.strip_chars().str.len_chars().min() > 0
    assert not library["title"].str.contains("\n").any()


def test_every_judged_document_is_there(library: pl.DataFrame) -> None:
    judged = {judgment.doc_id for judgment in _golden_set.judgments()}
    assert judged <= set(library["doc_id"])
