"""What ships in the catalog, for tests that hold it against published figures."""

from readerkit.app.catalog import load_clusters
from readerkit.content.strict_yaml import parse_yaml
from readerkit.estimate.shape import Shape
from tests.helpers import ROOT

MODELS = parse_yaml(
    (ROOT / "readerkit" / "catalog" / "models.yaml").read_bytes(), "models"
).value
CLUSTERS = load_clusters()


def shape(name: str) -> Shape:
    return Shape.parse(MODELS[name]["shape"])
