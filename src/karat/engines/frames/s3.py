"""Objects in S3, by address (``s3://bucket/key``): listed, fetched, and read by the engines.

Keys come from the environment variables of AWS only, and messages never show them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.errors import InputError, MissingExtra, UsageError
from karat.tables.online.events import S3

if TYPE_CHECKING:
    import pyarrow.fs as arrow_fs  # type: ignore[import-untyped]

_PIECE = 1 << 23  # bytes of a request
_PATIENCE_S = 5  # until a connection counts as impossible
_TRIES = 3
_CODE = re.compile(r"AWS Error ([A-Z_]+)|HTTP status (\d+)")
_DENIED = {"ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "403", "401"}
_DENIED |= {"INVALID_CLIENT_TOKEN_ID", "UNRECOGNIZED_CLIENT", "INVALID_SIGNATURE"}
_ENDPOINT = re.compile(r"https?://[\w.-]+(:\d{1,5})?/?")
_ELSEWHERE = {"301", "400"}  # what S3 answers for a bucket of another region
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[!]?\]?[^\]]*\]")
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a bucket."""

    address: str
    size: int  # in bytes
    changed_us: int  # when it was last written, microseconds UTC


@dataclass(frozen=True)
class _Settings:
    key: str
    secret: str = field(repr=False)
    token: str | None = field(repr=False)
    region: str
    endpoint: str | None  # None for that of AWS

    @property
    def host(self) -> str:
        """The server as shown in messages."""
        return self.endpoint or f"https://s3.{self.region}.amazonaws.com"


def listed(address: str) -> list[StoredObject]:
    """The object of an address, all objects below it, or those that match it as a pattern.

    Raises:
        InputError: no bucket, no access, no connection, or no object.
    """
    from pyarrow.fs import FileSelector, FileType  # after the check that it is installed

    name = address.removeprefix(S3).strip("/")
    bucket, _, key = name.partition("/")
    if not bucket or has_magic(bucket):
        raise UsageError(f"{address} names no bucket", fix=f"{S3}BUCKET/PATH")
    with _explained(address):
        files = filesystem()
        only = files.get_file_info(name)
        if only.type == FileType.File:
            return [_object(only)]
        deep = True
        if has_magic(key):
            plain = key[: next(_TOKEN.finditer(key)).start()].rpartition("/")[0]
            deep = "**" in key or "/" in key[len(plain) + 1 :]
            pattern = re.compile(re.escape(f"{bucket}/") + _translated(key))
            name = f"{bucket}/{plain}".strip("/")
        try:
            found = files.get_file_info(FileSelector(name, recursive=deep))
        except FileNotFoundError:
            found = []
    objects = [_object(each) for each in found if each.type == FileType.File]
    if has_magic(key):
        objects = [each for each in objects if pattern.fullmatch(each.address.removeprefix(S3))]
    if not objects:
        problem = "no object matches this pattern" if has_magic(key) else "there is no object here"
        raise InputError(problem, file=address, fix=f"aws s3 ls {S3}{bucket}/ lists what there is")
    return sorted(objects, key=lambda each: each.address)


def fetched(stored: StoredObject, target: Path, watch: Callable[[int], None]) -> str:
    """Copy an object into a file; its SHA-256. Memory does not grow with the object."""
    digest, name = hashlib.sha256(), stored.address.removeprefix(S3)
    with _explained(stored.address):
        files = filesystem()
        with files.open_input_file(name) as stream, target.open("wb") as file:
            while piece := stream.read(_PIECE):
                file.write(piece)
                digest.update(piece)
                watch(len(piece))
        if _object(files.get_file_info(name)) != stored:
            raise InputError(
                "the object changed while it was being read",
                file=stored.address,
                fix="import again when it is complete",
            )
    return digest.hexdigest()


def content(address: str) -> bytes:
    """A small object.

    Raises:
        FileNotFoundError: it does not exist.
        InputError: no bucket, no access, no connection.
    """
    with _explained(address), filesystem().open_input_file(address.removeprefix(S3)) as stream:
        data: bytes = stream.read()
    return data


def polars_options(path: str) -> dict[str, Any]:
    """How ``polars.scan_parquet`` reads a file: nothing to add for local ones."""
    if not path.startswith(S3):
        return {}
    settings = _settings()
    options = {
        "aws_access_key_id": settings.key,
        "aws_secret_access_key": settings.secret,
        "aws_session_token": settings.token,
        "aws_region": settings.region,
        "aws_endpoint_url": settings.endpoint,
        "aws_allow_http": "true" if (settings.endpoint or "").startswith("http:") else None,
        "connect_timeout": f"{_PATIENCE_S}s",
        "max_retries": _TRIES - 1,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return {"storage_options": given, "credential_provider": None}


def dataset(addresses: Sequence[str]) -> Any:
    """Parquet objects as one Arrow dataset, with the columns of all."""
    from pyarrow import dataset as arrow

    names = [each.removeprefix(S3) for each in addresses]
    with _explained(addresses[0]):
        factory = arrow.FileSystemDatasetFactory(filesystem(), names, arrow.ParquetFileFormat())
        return factory.finish(factory.inspect(promote_options="permissive"))


def filesystem() -> arrow_fs.S3FileSystem:
    """Arrow's file system for S3, as the environment says."""
    return _opened(_settings())


@cache
def _opened(settings: _Settings) -> arrow_fs.S3FileSystem:
    from pyarrow import fs

    return fs.S3FileSystem(
        access_key=settings.key,
        secret_key=settings.secret,
        session_token=settings.token,
        region=settings.region,
        endpoint_override=settings.endpoint,
        connect_timeout=_PATIENCE_S,
        request_timeout=2 * _PATIENCE_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
    )


def _settings() -> _Settings:
    variables = os.environ
    key, secret = (variables.get(f"AWS_{name}") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    if not key or not secret:
        raise UsageError(
            f"{S3} needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
            fix="of a profile or role: eval $(aws configure export-credentials --format env)",
        )
    endpoint = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL") or None
    if endpoint is not None and not _ENDPOINT.fullmatch(endpoint):
        raise UsageError(
            "AWS_ENDPOINT_URL is not the address of a server", fix="such as https://HOST:PORT"
        )
    return _Settings(
        key,
        secret,
        variables.get("AWS_SESSION_TOKEN") or None,
        variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION") or "us-east-1",
        endpoint and endpoint.rstrip("/"),
    )


def _object(info: Any) -> StoredObject:
    return StoredObject(f"{S3}{info.path}", info.size or 0, (info.mtime_ns or 0) // 1000)


def _translated(pattern: str) -> str:
    """A pattern such as ``logs/**/*.gz`` as a regular expression."""
    parts, place = [], 0
    for token in _TOKEN.finditer(pattern):
        text = token.group()
        parts += [re.escape(pattern[place : token.start()])]
        parts += [_MEANING.get(text) or text.replace("[!", "[^", 1).replace("\\", "\\\\")]
        place = token.end()
    return "".join([*parts, re.escape(pattern[place:])])


@contextmanager
def _explained(address: str) -> Iterator[None]:
    """Errors of S3 in words; their own text may quote the request, so it is not shown."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "pyarrow", "s3", S3) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno is not None:  # of a local file
            reason = f"cannot be stored here: {error.strerror}"
            raise InputError(reason, file=address, fix="free some space") from None
        codes = {code for match in _CODE.finditer(str(error)) for code in match.groups() if code}
        raise _error(address, codes) from None


def _error(address: str, codes: set[str]) -> InputError:
    settings = _settings()
    bucket = address.removeprefix(S3).partition("/")[0]
    if "NO_SUCH_BUCKET" in codes:
        what = f"there is no bucket {bucket}"
        fix = f"check its name; the server is {settings.host} (AWS_ENDPOINT_URL)"
    elif codes & _DENIED:
        what = "access is denied"
        fix = "check the keys in the environment; they need s3:ListBucket and s3:GetObject"
    elif codes & {"NETWORK_CONNECTION", "REQUEST_TIMEOUT"}:
        what = f"{settings.host} cannot be reached"
        fix = "check the network, and AWS_ENDPOINT_URL"
    elif codes & _ELSEWHERE:
        what = f"the server refuses the request for the region {settings.region}"
        fix = "set AWS_REGION to the bucket's"
    else:
        what = f"cannot be read: {', '.join(sorted(codes)) or 'the server failed'}"
        fix = f"try again; the server is {settings.host}"
    return InputError(what, file=address, fix=fix)
