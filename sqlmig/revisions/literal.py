"""Python literals that read well in a revision file, and give back exactly the same text.

It knows how Python reads strings, nothing of SQL or of revisions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# What a source text can't hold as itself: line ends other than LF, NUL and other control
# characters, halves of surrogate pairs, and the marks that turn text around unseen.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
# A double quote before another one, or at the end: escaped, so that three never meet.
_QUOTE = re.compile(r'"(?="|\Z)')


def text_literal(text: str) -> str:
    """A triple-quoted literal of `text`; raw where backslashes ask for it, escaped where it must.

    Lines stay lines: the SQL in a revision file can be read and searched.
    """
    ends_raw = text.endswith(('"', "\\"))
    if "\\" not in text and '"""' not in text and not ends_raw and not _UNSAFE.search(text):
        return f'"""{_opened(text)}"""'
    if '"""' not in text and not ends_raw and not _UNSAFE.search(text):
        return f'r"""{text}"""'
    return f'"""{_opened(escaped(text))}"""'


def escaped(text: str) -> str:
    """`text` as it may stand between triple double quotes, in a string that is not raw."""
    text = _QUOTE.sub(r'\\"', text.replace("\\", "\\\\"))
    return _UNSAFE.sub(lambda found: _escape(ord(found.group())), text)


def program_literal(files: Mapping[str, str]) -> str:
    """The literal {path: text}, sorted by path."""
    if not files:
        return "{}"
    entries = (f"    {_quoted(path)}: {text_literal(files[path])},\n" for path in sorted(files))
    return f"{{\n{''.join(entries)}}}"


def names_literal(names: Sequence[str]) -> str:
    """None for no name, a string for one, a tuple for more."""
    if not names:
        return "None"
    return _quoted(names[0]) if len(names) == 1 else f"({', '.join(map(_quoted, names))})"


def _opened(text: str) -> str:
    """Several lines begin below the quotes, so that their left margin is straight."""
    return f"\\\n{text}" if "\n" in text else text


def _quoted(name: str) -> str:
    return f'"{escaped(name)}"' if name.isprintable() and '"' not in name else repr(name)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
