"""The parts of a workbook: files of XML in an archive, parsed in pieces.

All elements of all parts together are counted while they are read. A document type is refused, so
there are no entities.
"""

import posixpath
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple
from xml.parsers import expat

from core.files.workbook_sentences import TOO_LARGE_UNPACKED, UNREADABLE, UNREADABLE_BELOW
from core.inputs import InputProblem

MAX_FILES = 1000  # in the archive
MOST_PARSED = 4_500_000  # elements that the XML parser reads, which takes twice as long
PIECE = 64 * 1024
MAX_NAMES = 10_000  # of elements and attributes, in one part
MAX_TAG = 1_000_000  # bytes of a tag or a comment
MAX_DEPTH = 100  # of elements in each other; the parser keeps each open one


class Limits(NamedTuple):
    """The largest workbook of a kind of file. A row with three texts has 7 elements, and 6 more in
    the table of texts."""

    elements: int
    unpacked_bytes: int


Start = Callable[[dict[str, str]], object]  # called with the attributes
End = Callable[[], object]


class Elements:
    """The handlers of each kind of element, and of text.

    If `is_plain` and `is_between()` hold, elements that end with `last_tag` may be read without the
    XML parser.
    """

    add: Callable[[str], object] | None = None
    last_tag = b"\n"
    is_plain = True  # in UTF-8, and without CDATA sections

    def __init__(
        self,
        start_of: Callable[[str], Start | None],
        end_of: Callable[[str], End | None] = lambda _kind: None,
    ) -> None:
        self.start_of, self.end_of = start_of, end_of

    def is_between(self) -> bool:
        """Whether the next element is one that `read_plain` knows."""
        return False

    def read_plain(self, _text: str) -> int:
        """Reads the plain elements at the start of the text; returns where they end."""
        return 0

    def declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        self.is_plain = (encoding or "utf-8").lower() == "utf-8"

    def begin_section(self) -> None:
        self.is_plain = False


class Parts:
    """The parts of the workbook with this content. `most` limits its bytes when it is unpacked, and
    the elements of all its parts together. `advance` is called with 0 after each piece of a part,
    and may raise. Raises InputProblem, also while parts are read."""

    def __init__(self, content: bytes, most: Limits, advance: Callable[[int], object]) -> None:
        self._advance, self._left, self._parsed = advance, most.elements, 0
        with refusing_broken_files():
            self._archive = zipfile.ZipFile(BytesIO(content))
            files = self._archive.infolist()
        if len(files) > MAX_FILES or sum(one.file_size for one in files) > most.unpacked_bytes:
            raise InputProblem(TOO_LARGE_UNPACKED)
        self.files = {_name(one.filename): one for one in files}
        if len(self.files) < len(files):  # programs do not agree which one counts
            raise InputProblem(UNREADABLE)

    def start_of(self, name: str) -> bytes:
        """The first bytes of a file in the archive; empty if there is none."""
        if name not in self.files:
            return b""
        with self._archive.open(self.files[name]) as stream:
            return stream.read(PIECE)

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """The kind and the target of each relation of a part."""
        folder, name = posixpath.split(part)
        found: dict[str, tuple[str, str]] = {}

        def start(kind: str, values: dict[str, str]) -> None:
            if kind == "Relationship" and values.get("TargetMode") != "External":
                target = values["Target"].replace("\\", "/")
                target = posixpath.normpath(posixpath.join("/", folder, target))
                found[values["Id"]] = (values["Type"].rpartition("/")[2], target.lstrip("/"))

        self.read_starts(posixpath.join(folder, "_rels", f"{name}.rels"), start)
        return found

    def read_starts(self, part: str, start: Callable[[str, dict[str, str]], None]) -> None:
        """Calls `start` with the kind and the attributes of each element of a part."""
        handler = Elements(lambda kind: partial(start, kind))
        for _size in self.read(part, handler):
            pass

    def read(self, part: str, handler: Elements) -> Iterator[int]:
        """Parses a part in pieces; yields how many bytes of it each piece has. Counts the elements
        of all parts together."""
        names: dict[str, str] = {}  # of elements and attributes, which the parser keeps
        parser = expat.ParserCreate(intern=names)
        depth = _connect(parser, handler, self._count)
        read, rest = 0, b""
        with self._archive.open(self.files[part.lower()]) as stream:
            while piece := stream.read(PIECE):
                if not read and b"\0" in piece[:4]:  # UTF-16
                    handler.is_plain = False
                content, tag, rest = (rest + piece).rpartition(handler.last_tag)
                content, rest = (content + tag, rest) if tag else (rest, b"")
                if parser.CurrentByteIndex == read and handler.is_between():
                    content = self._read_plain(content, handler)
                left = self._left
                parser.Parse(content, False)
                read += len(content)
                self._parsed += left - self._left
                if self._parsed > MOST_PARSED:
                    raise InputProblem(TOO_LARGE_UNPACKED)
                is_long = read - parser.CurrentByteIndex > MAX_TAG
                if is_long or depth() > MAX_DEPTH or len(names) > MAX_NAMES:
                    raise ValueError
                try:
                    self._advance(0)
                except Exception as error:
                    raise _OtherError from error
                yield len(piece)
            parser.Parse(rest, True)
            yield 0

    def _read_plain(self, content: bytes, handler: Elements) -> bytes:
        """Reads what it can without the XML parser, twice as fast; returns the rest."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return content
        end = handler.read_plain(text)
        self._count(text.count("<", 0, end) - text.count("</", 0, end))
        return text[end:].encode()

    def _count(self, elements: int) -> None:
        self._left -= elements
        if self._left < 0:
            raise InputProblem(TOO_LARGE_UNPACKED)


def _connect(
    parser: expat.XMLParserType, handler: Elements, count: Callable[[int], None]
) -> Callable[[], int]:
    """Makes the parser call the handler and `count` its elements. Returns a function that says how
    many elements are open."""
    starts: dict[str, Start | None] = {}
    ends: dict[str, End | None] = {}
    depth = 0

    def start(name: str, values: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        count(1)
        try:
            begin = starts[name]
        except KeyError:
            kind = name.rpartition(":")[2]
            starts[name], ends[name] = handler.start_of(kind), handler.end_of(kind)
            begin = starts[name]
        if begin is not None:
            begin(values)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        if (finish := ends[name]) is not None:
            finish()

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.CharacterDataHandler = handler.add
    parser.XmlDeclHandler = handler.declare
    parser.StartCdataSectionHandler = handler.begin_section
    return lambda: depth


def _name(name: str) -> str:
    """The name of a part as it is looked up: some programs write it in other letters, or with
    backslashes."""
    return name.replace("\\", "/").lower().lstrip("/")


def _refuse_doctype(*_arguments: Any) -> None:
    raise InputProblem(UNREADABLE)


class _OtherError(Exception):
    """Carries an error of `advance`, which is not one of the file, to the caller."""


class refusing_broken_files:
    """Raises InputProblem for whatever a broken file leads to. `line` gives the line so far."""

    def __init__(self, line: Callable[[], int] | None = None) -> None:
        self._line = line

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, InputProblem):
            return
        if isinstance(error, _OtherError) and error.__cause__:
            raise error.__cause__
        if self._line is None:
            raise InputProblem(UNREADABLE) from None
        values = {"line": self._line(), "problem": UNREADABLE}
        raise InputProblem(UNREADABLE_BELOW % values) from None
