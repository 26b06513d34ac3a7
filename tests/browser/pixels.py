"""What colours a part of a page has, as a screen shows them."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from playwright.sync_api import Locator

COUNT = """async png => {
  const image = new Image();
  image.src = "data:image/png;base64," + png;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const data = context.getImageData(0, 0, image.width, image.height).data;
  const seen = new Set();
  for (let at = 0; at < data.length; at += 4)
    seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
  return Array.from(seen);
}"""

Colour = tuple[int, int, int]


def colours(part: Locator) -> set[Colour]:
    """Return every colour of the pixels of a part."""
    png = base64.b64encode(part.screenshot()).decode()
    blank = part.page.context.new_page()  # whose policy lets an image be read
    try:
        seen: Iterable[int] = blank.evaluate(COUNT, png)
    finally:
        blank.close()
    return {(each >> 16, each >> 8 & 255, each & 255) for each in seen}


def green(seen: Iterable[Colour]) -> list[Colour]:
    """Return those that say that all is well."""
    return [(r, g, b) for r, g, b in seen if g > r + 20 and g > b + 20]
