from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.settings.lines import Lines, Path

TEXT = '''\
# first [not.a.table]
top = 1

[a . "b c"]
x = """
y = 2
[z]
""""
list = [ # [w]
  1, "]", [2,
  3],
]
inline = { p = 1, q = { r = 2 } }
'q.q' = 'it''s'
d.e.f = 1
  [[t]]
  k = 1
[[t]]
k = 2
[t.sub]
k = 3
[[t.deep]]
k = 4
'''.replace("'it''s'", "'its'")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("a",), 4),
        (("a", "b c"), 4),
        (("a", "b c", "x"), 5),
        (("a", "b c", "list"), 9),
        (("a", "b c", "inline"), 13),
        (("a", "b c", "inline", "q", "r"), 13),
        (("a", "b c", "q.q"), 14),
        (("a", "b c", "d", "e", "f"), 15),
        (("t", 0), 16),
        (("t", 0, "k"), 17),
        (("t", 1), 18),
        (("t", 1, "k"), 19),
        (("t", 1, "sub", "k"), 21),
        (("t", 1, "deep", 0, "k"), 23),
        (("a", "b c", "missing"), 4),
        (("missing",), None),
    ],
)
def test_a_key_is_found_on_its_line(path: Path, line: int | None) -> None:
    tomllib.loads(TEXT)
    assert Lines(TEXT).of(path) == line


VALUES = st.sampled_from(
    ["1", '"a # ["', "'''\n]\n'''", '"""\nk0 = 9\n"""', "[\n1, # ]\n[2]]", "{ a = '}' }", "true"]
)


@given(st.lists(st.tuples(VALUES, st.sampled_from(["", " # note [x]", "\n", "\n# k0 = 1\n[s]"]))))
def test_every_key_of_a_made_up_file_is_found_where_it_was_written(
    entries: list[tuple[str, str]],
) -> None:
    text, written, table = "", {}, 0
    for number, (value, after) in enumerate(entries):
        name = f"k{number}"
        path: Path = (f"s{table}", name) if table else (name,)
        written[path] = text.count("\n") + 1
        text += f"{name} = {value}{after}\n"
        if after.endswith("[s]"):
            table += 1
            text = text.removesuffix("[s]\n") + f"[s{table}]\n"
    tomllib.loads(text)
    lines = Lines(text)
    assert {path: lines.of(path) for path in written} == written
