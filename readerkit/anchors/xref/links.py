"""From a name in one file to its definition in another, and back to every use.

Syntax alone decides: imports, module-level names, attributes of modules and classes,
methods through ``self`` and base classes. Where it leaves several definitions, all of
them are candidates; where it leaves none, there is no link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from readerkit.anchors.xref.names import LOCAL, SELF, Names
from readerkit.model.git_names import TreePath

MAX_HOPS = 12
"""Imports that one name may pass through before it is given up on."""

File = tuple[str, TreePath]
"""Upstream and path."""


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A definition, or a whole module where ``name`` is empty.

    Without an upstream, what an import takes from elsewhere: ``path`` is its module.
    """

    upstream: str
    path: str
    line: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """What a dotted name means: each of its parts that is known."""

    parts: tuple[tuple[int, tuple[Target, ...]], ...]
    """Which part, and what it means: one definition, or the candidates. Of
    ``module.Class.method`` all three may be known, or only the first."""


class Links:
    """The names of every file, joined."""

    def __init__(self, files: Mapping[File, Names]) -> None:
        self._files = files
        self._modules: dict[str, File] = {}
        self._packages: set[str] = set()
        self._bound: dict[File, dict[tuple[str, str], list[tuple[str, str]]]] = {}
        self._stars: dict[File, list[str]] = {}
        self._aliases: dict[str, str] = {}
        """Modules by another name, which the module before the last dot gives them."""
        for file, names in files.items():
            module = module_name(file[1])
            self._modules.setdefault(module, file)
            parts = module.split(".")
            self._packages.update(".".join(parts[:n]) for n in range(1, len(parts)))
            bound = self._bound.setdefault(file, {})
            for each in names.imports:
                whole = absolute(each.module, file[1])
                if each.name == "*":
                    self._stars.setdefault(file, []).append(whole)
                else:
                    bound.setdefault((each.scope, each.alias), []).append(
                        (whole, each.name)
                    )
            for alias, name in names.aliases.items():
                for whole, taken in bound.get(("", name), ()):
                    named = f"{whole}.{taken}" if taken else whole
                    self._aliases[f"{module}.{alias}"] = named

    def resolve(self, file: File, chain: str, owner: str = "") -> Link | None:
        """Return what a dotted name in a file means, as far as syntax tells."""
        head, *attributes = chain.split(".")
        if head in SELF and attributes and not owner.startswith(LOCAL):
            found = self._method(file, owner, attributes[0], MAX_HOPS)
            return Link(((1, found),)) if found else None
        modules: list[str] = []
        if owner and not owner.startswith(LOCAL):
            found = tuple(self._own(file, f"{owner}.{head}"))
        else:
            found = self._seen(file, head, MAX_HOPS, owner)
            modules = self._modules_named(file, head, owner)
        parts = [(0, found)]
        for part, attribute in enumerate(attributes, start=1):
            elsewhere = [
                _attribute_of(each, attribute) for each in found if not each.upstream
            ]
            if modules:
                found = tuple(self._in_modules(modules, attribute))
                modules = self._modules_of(f"{m}.{attribute}" for m in modules)
            else:
                found = self._attribute(found, attribute)
            if not (found or modules):
                break
            if found:
                found += tuple(elsewhere)
            parts.append((part, found))
        known = tuple(each for each in parts if each[1])
        return Link(known) if known else None

    def _own(self, file: File, name: str) -> list[Target]:
        lines = self._files[file].defined.get(name, ())
        return [Target(*file, line, name) for line in lines]

    def links_of(self, file: File) -> dict[tuple[str, str], Link]:
        """Return what each dotted name (with the class of its ``self``) means."""
        uses = self._files[file].uses
        keys = dict.fromkeys((use.chain, use.owner) for use in uses)
        found = ((key, self.resolve(file, *key)) for key in keys)
        return {key: link for key, link in found if link}

    def uses(
        self, links: Mapping[File, Mapping[tuple[str, str], Link]]
    ) -> dict[Target, list[Target]]:
        """Return the places that use each definition: a file and a line each."""
        used: dict[Target, list[Target]] = {}
        for file, known in links.items():
            for use in self._files[file].uses:
                link = known.get((use.chain, use.owner))
                for _, targets in link.parts if link else ():
                    for target in targets:
                        if target.name and target.upstream:
                            used.setdefault(target, []).append(Target(*file, use.line))
        return used

    # --- one step each ---

    def _seen(
        self, file: File, name: str, hops: int, scope: str = ""
    ) -> tuple[Target, ...]:
        """Return what a bare name means in a module, or in a scope that imports it."""
        if file not in self._files or hops == 0:
            return ()
        found = [] if scope else self._own(file, name)
        bound = self._bound[file].get((scope, name), ())
        if len(found) == 1 and not bound:
            return (found[0],)
        elsewhere: list[Target] = []
        for module, taken in bound:
            known: tuple[Target, ...] = ()
            if taken:
                known = self._in_module(module, taken, hops - 1)
            elif module in self._modules:
                known = (Target(*self._modules[module], 1),)
            found += known
            if not known and module not in self._packages:
                elsewhere.append(Target("", module, 0, taken))
        if found:
            found += elsewhere
        if found or scope or name.startswith("_"):
            return tuple(dict.fromkeys(found))
        for module in self._stars.get(file, ()):
            if not found and module in self._modules:
                found += self._seen(self._modules[module], name, hops - 1)
        return tuple(dict.fromkeys(found))

    def _in_module(self, module: str, name: str, hops: int) -> tuple[Target, ...]:
        """Return what ``module.name`` means: a definition, or a module of a package."""
        below = f"{module}.{name}"
        home = self._modules.get(module)
        found = self._seen(home, name, hops) if home else ()
        if not found and below in self._modules:
            found = (Target(*self._modules[below], 1),)
        return found

    def _in_modules(self, modules: list[str], name: str) -> Iterator[Target]:
        for module in modules:
            yield from self._in_module(module, name, MAX_HOPS)

    def _modules_named(self, file: File, head: str, scope: str) -> list[str]:
        """Return the modules that a name stands for, by the file's imports."""
        bound = self._bound[file].get((scope, head), ())
        return self._modules_of(f"{m}.{taken}" if taken else m for m, taken in bound)

    def _modules_of(self, names: Iterable[str]) -> list[str]:
        """Return the modules among some dotted names, each by its own name."""
        own = (self._aliases.get(name, name) for name in names)
        known = (
            name for name in own if name in self._modules or name in self._packages
        )
        return list(dict.fromkeys(known))

    def _attribute(
        self, owners: tuple[Target, ...], attribute: str
    ) -> tuple[Target, ...]:
        """Return what classes among ``owners`` call ``attribute``."""
        found: list[Target] = []
        for owner in owners:
            file = (owner.upstream, TreePath(owner.path))
            if file in self._files and owner.name in self._files[file].bases:
                found += self._method(file, owner.name, attribute, MAX_HOPS)
        return tuple(dict.fromkeys(found))

    def _method(
        self, file: File, owner: str, name: str, hops: int
    ) -> tuple[Target, ...]:
        """Return a class's own method, or else the first that a base class has."""
        names = self._files.get(file)
        if names is None or hops == 0:
            return ()
        lines = names.defined.get(f"{owner}.{name}")
        if lines:
            return tuple(Target(*file, line, f"{owner}.{name}") for line in lines)
        for base in names.bases.get(owner, ()):
            inherited: list[Target] = []
            for target in self._whole(file, base):
                inner = (target.upstream, TreePath(target.path))
                if (inner, target.name) != (file, owner) and target.name:
                    inherited += self._method(inner, target.name, name, hops - 1)
            if inherited:
                return tuple(dict.fromkeys(inherited))
        return ()

    def _whole(self, file: File, chain: str) -> tuple[Target, ...]:
        """Return what a dotted name means, if it is known to its end."""
        link = self.resolve(file, chain)
        if link is None or link.parts[-1][0] < chain.count("."):
            return ()
        return link.parts[-1][1]


def _attribute_of(owner: Target, attribute: str) -> Target:
    inner = f"{owner.path}.{owner.name}" if owner.name else owner.path
    return Target("", inner, 0, attribute)


def rivals(
    links: Mapping[File, Mapping[tuple[str, str], Link]],
) -> dict[Target, set[Target]]:
    """Return, of each definition, the others that some use of it may mean instead."""
    found: dict[Target, set[Target]] = {}
    for known in links.values():
        for link in known.values():
            for _, targets in link.parts:
                if len(targets) > 1:
                    for target in targets:
                        found.setdefault(target, set()).update(targets)
    for target, others in found.items():
        others.discard(target)
    return {target: others for target, others in found.items() if target.upstream}


def module_name(path: str) -> str:
    """Return the dotted name of a module.

    >>> module_name("megatron/core/tensor_parallel/__init__.py")
    'megatron.core.tensor_parallel'
    """
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def absolute(module: str, path: str) -> str:
    """Return a module's name in full, from how a file spells it.

    >>> absolute("..utils", "megatron/core/models/gpt.py")
    'megatron.core.utils'
    """
    level = len(module) - len(module.lstrip("."))
    if not level:
        return module
    package = path.split("/")[:-level]
    rest = module[level:]
    return ".".join([*package, rest] if rest else package)
