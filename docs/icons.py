"""Makes the font with the icons of the back office (operators/frame/static/operators/icons.woff2).

    uv run --with fonttools --with brotli docs/icons.py

The theme's font has thousands of icons and 290 KB, which every page would load. This one keeps the
icons whose names stand in the theme's templates and style sheets, in our templates and in our
Python files. Run it after a new icon or a new version of the theme:
tests/e2e/journeys/test_back_office_in_browser.py fails if an icon is missing. The icons are
Material Symbols, under the Apache License 2.0.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import unfold
from fontTools import subset
from fontTools.ttLib import TTFont

PROJECT = Path(__file__).resolve().parents[1]
RESULT = PROJECT / "operators" / "frame" / "static" / "operators" / "icons.woff2"
ELEMENT = re.compile(r"material-symbols-outlined.*?</", re.DOTALL)
NAME = re.compile(r"[a-z][a-z0-9_]+")
ARGUMENT = re.compile(r"icon[\"']?\s*[=:]\s*[\"']([a-z][a-z0-9_]+)")
CONTENT = re.compile(r"content:\s*\"([a-z][a-z0-9_]+)\"")
QUOTED = re.compile(r'"([a-z][a-z0-9_]+)"')


def main() -> None:
    theme = Path(unfold.__file__).parent
    font = TTFont(theme / "static/unfold/fonts/material-symbols/Material-Symbols-Outlined.woff2")
    glyphs = _glyphs_by_name(font)
    icons = sorted(glyphs.keys() & set(_names(theme)))
    options = subset.Options(flavor="woff2", layout_features=["liga", "rlig"], layout_closure=False)
    maker = subset.Subsetter(options)
    maker.populate(glyphs=[glyphs[name] for name in icons], text="".join(icons))
    maker.subset(font)
    subset.save_font(font, str(RESULT), options)
    sys.stdout.write(f"{len(icons)} icons, {RESULT.stat().st_size:,} bytes: {' '.join(icons)}\n")


def _glyphs_by_name(font: TTFont) -> dict[str, str]:
    """The glyph of each icon. The name of an icon is a ligature: its letters become the glyph."""
    letters = {glyph: chr(code) for code, glyph in font.getBestCmap().items()}
    glyphs = {}
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for entry in lookup.SubTable:
            table = getattr(entry, "ExtSubTable", entry)
            for first, ligatures in getattr(table, "ligatures", {}).items():
                for ligature in ligatures:
                    name = "".join(letters.get(one, "?") for one in (first, *ligature.Component))
                    glyphs[name] = ligature.LigGlyph
    return glyphs


def _names(theme: Path) -> Iterator[str]:
    """Words that may be names of icons."""
    for templates in (theme, PROJECT / "templates"):
        for template in templates.rglob("*.html"):
            for element in ELEMENT.findall(template.read_text()):
                yield from NAME.findall(element.partition(">")[2])
    for sheet in theme.rglob("*.css"):
        yield from CONTENT.findall(sheet.read_text())
    ours = (PROJECT / "templates").rglob("*.html")
    for source in (*theme.rglob("*.html"), *theme.rglob("*.py"), *ours):
        yield from ARGUMENT.findall(source.read_text())
    declared = [*PROJECT.glob("*/backoffice.py"), *(PROJECT / "operators").rglob("*.py")]
    for source in (PROJECT / "config" / "theme.py", *declared):
        yield from QUOTED.findall(source.read_text())


if __name__ == "__main__":
    main()
