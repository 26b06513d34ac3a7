"""Questions as a QTI 2.1 package: an item each, a test, and a manifest.

Names and order of elements follow IMS QTI 2.1 (imsqti_v2p1.xsd) and content packaging
1.1 (imscp_v1p1.xsd).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from readerkit.quiz.portable import PortableQuestion, TextForm
from readerkit.render.quiz_qti_item import QTI, add, identifier_of, item_of

PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"


def package(questions: Sequence[PortableQuestion], title: str) -> dict[str, bytes]:
    """Return the files of a package by their names."""
    items = {f"items/{each.prompt.id}.xml": item_of(each) for each in questions}
    files = {
        "imsmanifest.xml": _manifest([*items]),
        "test.xml": _test(questions, title),
        **items,
    }
    return {
        name: ET.tostring(root, encoding="utf-8", xml_declaration=True)
        for name, root in files.items()
    }


def is_essay(question: PortableQuestion) -> bool:
    """Tell whether a person has to mark a question."""
    return isinstance(question.form, TextForm)


def _test(questions: Iterable[PortableQuestion], title: str) -> ET.Element:
    test = ET.Element(
        "assessmentTest", {"xmlns": QTI, "identifier": "test", "title": title}
    )
    part = add(
        test,
        "testPart",
        identifier="part",
        navigationMode="nonlinear",
        submissionMode="individual",
    )
    sections: dict[str, ET.Element] = {}
    for each in questions:
        topic = each.prompt.topic
        if topic not in sections:
            sections[topic] = add(
                part,
                "assessmentSection",
                identifier=f"topic-{topic}",
                title=topic.replace("_", " "),
                visible="true",
            )
        add(
            sections[topic],
            "assessmentItemRef",
            identifier=identifier_of(each),
            href=f"items/{each.prompt.id}.xml",
        )
    return test


def _manifest(items: Iterable[str]) -> ET.Element:
    manifest = ET.Element("manifest", {"xmlns": PACKAGE, "identifier": "package"})
    about = add(manifest, "metadata")
    add(about, "schema", "QTIv2.1 Package")
    add(about, "schemaversion", "1.0.0")
    add(manifest, "organizations")
    resources = add(manifest, "resources")
    names = {name: f"item-{number}" for number, name in enumerate(items, 1)}
    kinds = {"test.xml": ("test", "imsqti_test_xmlv2p1")} | {
        name: (identifier, "imsqti_item_xmlv2p1") for name, identifier in names.items()
    }
    for name, (identifier, kind) in kinds.items():
        resource = add(
            resources, "resource", identifier=identifier, type=kind, href=name
        )
        add(resource, "file", href=name)
        if name == "test.xml":
            for each in names.values():
                add(resource, "dependency", identifierref=each)
    return manifest
