"""The models that ship, for tests that hold them against published figures."""

from readerkit.estimate.shape import Shape
from readerkit.yaml_tree import parse_yaml
from tests.helpers import ROOT

MODELS = parse_yaml((ROOT / "catalog" / "models.yaml").read_bytes(), "models").value


def shape(name: str) -> Shape:
    return Shape.parse(MODELS[name]["shape"])
