#!/usr/bin/env python3
"""Everything to do with a clone of karat, with nothing but Python: ``python3 dev.py COMMAND``.

  demo [DIR]      install karat into .venv and run its worked example
  run ARGS…       run karat itself:  python3 dev.py run evaluate QRELS RUN
  test [ARGS…]    run the tests; --quick a part of them, --deep also what takes long;
                  other ARGS go to pytest, paths are read from the project's root
  check           lint, format, types, and the layers of the house
  print           print docs/reference and tests/net/expected anew
  pin             write requirements/*.txt anew (needs uv on PATH)

The environment is .venv beside this file. It is made once, and again when the requirements,
pyproject.toml or the interpreter change. Where packages come from is pip's own configuration.
"""

import sys

if sys.version_info < (3, 11):
    # Read by older Pythons too, so nothing in this file may use syntax newer than 3.6.
    sys.exit(
        "dev.py: karat needs Python 3.11 or newer, and this is {}.{}.{} ({})\n"
        "  fix: run it with a newer one, for example  python3.11 dev.py demo".format(
            *sys.version_info[:3], sys.executable
        )
    )

import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import threading
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "karat-dev.json"
REQUIREMENTS = ROOT / "requirements"
EVERY_S = 10.0  # between two lines of progress where no terminal shows them
CLEAR = "\r\x1b[K"  # back to the beginning of the line, and clear it

# What each command needs. dev.txt holds everything of the other two, at the same versions.
FILES = {"core": ("core.txt", "build.txt"), "dev": ("dev.txt",)}
# The order matters: the later ones are held to the versions of dev.txt.
PINNED = {
    "dev.txt": ("pyproject.toml", "--extra", "web", "--extra", "postgres", "--group", "dev"),
    # What the demo needs: a page of its gate, a workspace for its golden set, and a server of it.
    "core.txt": ("pyproject.toml", "--extra", "web"),
    "build.txt": ("--group", "build"),
}


def demo(args: Sequence[str]) -> int:
    """Run the worked example, in the caller's directory."""
    return run(["demo", *args])


def run(args: Sequence[str]) -> int:
    """Run karat, in the caller's directory."""
    prepare("core")
    return subprocess.run([BIN / "karat", *args], check=False).returncode


def test(args: Sequence[str]) -> int:
    """Run the tests. More than two workers gain nothing: they wait for the same few long tests.

    --quick, --deep and --record are options of pytest here: tests/durations.py, tests/conftest.py.
    """
    prepare("dev")
    # Each begins with a half, so that a file's tests share what is set up; then it helps the other.
    workers = ["-n", "auto", "--maxprocesses", "2", "--dist", "worksteal"]
    # Tests start hundreds of commands: each would compile every module anew.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return subprocess.run(
        [PYTHON, "-m", "pytest", *workers, *args], cwd=ROOT, env=environment, check=False
    ).returncode


def check(args: Sequence[str]) -> int:
    """Run every check, the later ones too when an earlier one fails."""
    refuse(args, "check")
    prepare("dev")
    checks = {
        "lint": ["ruff", "check"],
        "format": ["ruff", "format", "--check"],
        "types": ["mypy"],
        "layers": ["lint-imports", "--no-logo"],
    }
    failed = 0
    for name, (tool, *options) in checks.items():
        code, output = quiet([BIN / tool, *options])
        print(f"{name}: {'ok' if code == 0 else 'failed'}", flush=True)
        if code:
            print(output, flush=True)
        failed += code != 0
    return 1 if failed else 0


def print_again(args: Sequence[str]) -> int:
    """Print anew what is printed from the code, to be read in ``git diff``."""
    refuse(args, "print")
    prepare("dev")
    texts = [f"tests/net/test_{name}.py" for name in ("surface", "outputs", "pages")]
    printers = ["tests/docs/test_reference.py"], ["-m", "pytest", "-q", "--approve", *texts]
    codes = [subprocess.run([PYTHON, *each], cwd=ROOT, check=False).returncode for each in printers]
    return max(codes)


def pin(args: Sequence[str]) -> int:
    """Resolve pyproject.toml anew: one set of versions for every Python and platform."""
    refuse(args, "pin")
    uv = shutil.which("uv")
    if uv is None:
        return fail("pin needs uv on PATH", fix="pip install uv, in an environment of its own")
    # No header and no addresses: see docs/decisions/0002-requirements-without-addresses.md.
    resolve = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    resolve += ["--fork-strategy", "fewest", "--generate-hashes", "--no-header", "--upgrade"]
    for name, sources in PINNED.items():
        held = [] if name == "dev.txt" else ["--constraints", "requirements/dev.txt"]
        target = ["--output-file", f"requirements/{name}"]
        code, output = quiet([*resolve, *sources, *held, *target])
        if code:
            return fail(f"requirements/{name} cannot be resolved", detail=output)
        print(f"wrote requirements/{name}", flush=True)
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "demo": demo,
    "run": run,
    "test": test,
    "check": check,
    "print": print_again,
    "pin": pin,
}


def prepare(need: str) -> None:
    """Make .venv hold what the command needs; do nothing where it does already."""
    stamp = read_stamp()
    wanted = {name: fingerprint(name) for name in FILES}
    home = {"root": str(ROOT), "python": interpreter()}
    # Scripts in .venv name its place and its Python, so both must be the ones of today.
    same_home = PYTHON.exists() and {key: stamp.get(key) for key in home} == home
    if same_home:
        # dev holds all of core, so either stamp will do for core.
        if any(stamp.get(name) == wanted[name] for name in {need, "dev"}):
            return
    elif stamp or not works():
        # Made elsewhere, by another Python, or never finished. A .venv that somebody made by
        # hand has no stamp; if it works it stays, and karat is installed into it.
        build_venv()
    # While this stands, the environment is half made: a second call begins again.
    write_stamp({"state": "installing"})
    files = [option for name in FILES[need] for option in ("-r", str(REQUIREMENTS / name))]
    try:
        step(
            f"installing {' and '.join(f'requirements/{name}' for name in FILES[need])}",
            [*pip_install(), "--require-hashes", *files],
            packages=sum(pins(REQUIREMENTS / name) for name in FILES[need]),
        )
        step(
            "installing karat",
            [*pip_install(), "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
        )
    except SystemExit:
        # pip puts back what it could not replace, so what was whole before is whole now.
        if same_home:
            write_stamp(stamp)
        raise
    write_stamp({**home, need: wanted[need]})


def fingerprint(name: str) -> str:
    """A hash of everything an install of this kind is made from."""
    files = [ROOT / "pyproject.toml", *(REQUIREMENTS / file for file in FILES[name])]
    absent = [str(file.relative_to(ROOT)) for file in files if not file.exists()]
    if absent:
        sys.exit(fail(f"the clone lacks {', '.join(absent)}", fix="git checkout the files again"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def interpreter() -> str:
    """Which Python runs this: its version, and where it is installed."""
    return f"{sys.version} {sys.base_prefix}"


def read_stamp() -> dict[str, str]:
    """What was installed last; empty where nothing is known."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return {"state": "unreadable"}
    return stamp if isinstance(stamp, dict) else {"state": "unreadable"}


def write_stamp(stamp: dict[str, str]) -> None:
    """Keep what was installed; beside, then rename, so that a stamp is whole or absent."""
    beside = STAMP.with_suffix(".new")
    beside.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    beside.replace(STAMP)


def works() -> bool:
    """Whether .venv has a Python that is new enough, and a pip that starts."""
    if not PYTHON.exists():
        return False
    new_enough = "import sys; sys.exit(sys.version_info < (3, 11))"
    probes = (["-c", new_enough], ["-m", "pip", "--version"])
    return all(quiet([PYTHON, *probe])[0] == 0 for probe in probes)


def build_venv() -> None:
    """Make .venv from nothing."""
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        sys.exit(
            fail(
                f"this Python ({sys.executable}) cannot make virtual environments: no ensurepip",
                fix=f"apt install python{version}-venv (Debian, Ubuntu), or another Python",
            )
        )
    started = time.monotonic()
    tell(f"making .venv with Python {sys.version.split()[0]} …", end="")
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(VENV)
    try:
        venv.EnvBuilder(with_pip=True, symlinks=os.name != "nt").create(VENV)
    except (OSError, subprocess.CalledProcessError) as error:
        tell(" failed")
        output = getattr(error, "output", None) or b""
        sys.exit(fail(f"no virtual environment: {error}", detail=output.decode(errors="replace")))
    tell(f" {time.monotonic() - started:.1f} s")


def pip_install() -> list[str]:
    """Pip of the environment. No index options: they belong to the machine, not to the project."""
    # Compiling every module ahead takes as long as the rest; Python compiles what is used.
    lean = ["--no-compile", "--disable-pip-version-check", "--progress-bar", "off"]
    return [str(PYTHON), "-m", "pip", "install", *lean]


def pins(path: Path) -> int:
    """How many packages a requirements file pins."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return sum("==" in line and not line.startswith((" ", "#")) for line in lines)


def step(what: str, command: Sequence[str], packages: int = 0) -> None:
    """Run one step of the installation, and show how far it is; its output only if it fails.

    On a terminal one line is rewritten; elsewhere a line is added every ``EVERY_S`` seconds.
    """
    started = told = time.monotonic()
    rewrites = sys.stderr.isatty()
    tell(f"{what} …", end="" if rewrites else "\n")
    lines: list[str] = []
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        reader = threading.Thread(target=lines.extend, args=(process.stdout or (),), daemon=True)
        reader.start()
        while reader.is_alive():
            reader.join(0.2)
            now = time.monotonic()
            if now - told >= (0.2 if rewrites else EVERY_S):
                told = now
                said = f"{progress(lines, packages)} ({now - started:.0f} s)"
                tell(*((f"{CLEAR}{what} … {said}", "") if rewrites else (f"  {said}", "\n")))
        code = process.wait()
    head = f"{CLEAR}{what} …" if rewrites else " "
    if code:
        tell(f"{head} failed")
        fix = "fix what pip reports, then run the same command again"
        sys.exit(fail(f"{what} did not work", detail="".join(lines).strip(), fix=fix))
    tell(f"{head} {time.monotonic() - started:.1f} s")


def progress(lines: Sequence[str], packages: int) -> str:
    """How far pip is, by what it has printed."""
    found = [line.split() for line in list(lines)]
    if any(words[:3] == ["Installing", "collected", "packages:"] for words in found):
        return "installing what was downloaded"
    # One that is there already, or not for this Python, has been dealt with too.
    seen = sum(words[:1] in (["Collecting"], ["Ignoring"], ["Requirement"]) for words in found)
    last = next((words[1] for words in reversed(found) if words[:1] == ["Collecting"]), "")
    if not packages or not seen:
        return "working"
    return f"package {min(seen, packages)} of {packages}" + (f": {last}" if last else "")


def tell(text: str, end: str = "\n") -> None:
    """Say how it goes, on stderr: stdout belongs to the command that is run."""
    print(text, end=end, file=sys.stderr, flush=True)


def quiet(command: Sequence[str | Path]) -> tuple[int, str]:
    """Run a program from the root and keep its output: its exit code, what it said."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return done.returncode, done.stdout.strip()


def refuse(args: Sequence[str], command: str) -> None:
    """Stop at arguments a command does not take."""
    if args:
        sys.exit(fail(f"{command} takes no arguments, and got {' '.join(args)}"))


def fail(what: str, *, detail: str = "", fix: str = "") -> int:
    """Say what went wrong and how to mend it; the exit code to leave with."""
    lines = [detail, f"dev.py: {what}", f"  fix: {fix}" if fix else ""]
    tell("\n".join(line for line in lines if line))
    return 2


def main(args: Sequence[str]) -> int:
    """Pick the command and run it."""
    if not args or args[0] in {"-h", "--help", "help"}:
        print((__doc__ or "").strip())
        return 0 if args else 2
    command = COMMANDS.get(args[0])
    if command is None:
        return fail(f"there is no command {args[0]!r}", fix=f"one of {', '.join(COMMANDS)}")
    return command(args[1:])


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no "…" still gets the rest
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
