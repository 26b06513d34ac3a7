"""The script of some functions: all that they reach, from the very sources."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from readerkit.render.javascript.program import Own, Read, ScriptProgram
from readerkit.render.javascript.scope import ScriptNames
from readerkit.render.javascript.statements import Statements


def translate(
    entries: Mapping[str, tuple[str, str]], read: Read, methods: Iterable[str] = ()
) -> str:
    """Return a script that gives functions of ours to whoever has the runtime.

    ``entries``: by the name that it has there, the module and the name of each.
    ``methods``: what will be asked of the values that they return.

    Raises:
        ReaderkitError: what they reach has a construct that is not translated.
    """
    program = ScriptProgram(read)
    program.said.update(methods)
    for module, name in entries.values():
        program.need(module, name)
    names = ScriptNames(program)
    writer = Statements(names)
    lines = ['"use strict";', "(($)=>{"]
    for module, definitions in program.in_order():
        lines += [writer.define(module, each) for each in definitions]
    given = (f"{key}:{names.of(Own(*entry))}" for key, entry in entries.items())
    lines += [f"$.ours={{{','.join(given)}}};", "})(readerkitPython);"]
    return "\n".join(lines) + "\n"


def data(name: str, value: Any) -> str:
    """Return plain values as a part of a script; whole numbers stay whole."""
    return f"readerkitPython.{name} = {_literal(value)};\n"


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"[{_literal(key)},{_literal(each)}]" for key, each in value.items())
        return f"readerkitPython.dict([{','.join(pairs)}])"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_literal, value))}]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return f"{value}n" if isinstance(value, int) else json.dumps(value)
