"""The labels of a drawn diagram, put where a browser's own fonts leave room for them.

Whoever draws measures text without the fonts of the page: a label is narrower or has
fewer lines than its box expects, and stands at the box's corner; the title of a group
stands in the middle, where an arrow goes through it.
"""

from __future__ import annotations

import re

CENTRED = (
    "#my-svg .node foreignObject>div{display:flex!important;height:100%;"
    "align-items:center;justify-content:center}"
    "#my-svg .cluster-label{font-size:13px}"
)
"""What is added to the styles of an image."""
_TITLE = re.compile(
    r'(<rect style="[^"]*" x="(?P<left>-?[\d.]+)"[^>]*/>'
    r'<g class="cluster-label" transform="translate\()-?[\d.]+,'
)
_INSET = 8
"""Pixels between the left side of a group and its title."""


def place_labels(svg: str) -> str:
    """Return a drawing with labels in the middle, and titles of groups at the left."""
    styled = svg.replace("</style>", f"{CENTRED}</style>", 1)
    return _TITLE.sub(
        lambda title: f"{title[1]}{float(title['left']) + _INSET:g},", styled
    )
