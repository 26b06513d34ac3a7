"""From a name in one file to its definition in another, and back to every use.

Syntax alone decides: imports, module-level names, attributes of modules and classes,
methods through ``self`` and base classes. Where it leaves several definitions, all of
them are candidates; where it leaves none, there is no link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from readerkit.anchors.names import Names

MAX_HOPS = 12
"""Imports that one name may pass through before it is given up on."""

File = tuple[str, str]
"""Upstream and path."""


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A definition, or a whole module where ``name`` is empty."""

    upstream: str
    path: str
    line: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """What a dotted name means."""

    part: int
    """Which part of the dotted name is defined there: ``a.b`` may be known as far as
    ``a``."""
    targets: tuple[Target, ...]
    """One; or the candidates of an ambiguous name."""


class Links:
    """The names of every file, joined."""

    def __init__(self, files: Mapping[File, Names]) -> None:
        self._files = files
        self._modules: dict[str, File] = {}
        self._packages: set[str] = set()
        self._bound: dict[File, dict[str, list[tuple[str, str]]]] = {}
        self._stars: dict[File, list[str]] = {}
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
                    bound.setdefault(each.alias, []).append((whole, each.name))

    def resolve(self, file: File, chain: str, owner: str = "") -> Link | None:
        """Return what a dotted name in a file means, as far as syntax tells."""
        head, *attributes = chain.split(".")
        if owner:
            targets = self._method(file, owner, attributes[0], MAX_HOPS)
            return Link(1, targets) if targets else None
        found = self._module_level(file, head, MAX_HOPS)
        known = Link(0, found) if found else None
        modules = self._modules_named(file, head)
        for part, attribute in enumerate(attributes, start=1):
            if modules:
                found = tuple(self._in_modules(modules, attribute))
                modules = [
                    f"{m}.{attribute}" for m in modules if self._is_module(m, attribute)
                ]
            else:
                found = self._attribute(found, attribute)
            if found:
                known = Link(part, found)
            elif not modules:
                break
        return known

    def definitions(self, file: File) -> Iterator[Target]:
        """Yield what a file defines, in order."""
        for name, lines in self._files[file].defined.items():
            for line in lines:
                yield Target(*file, line, name)

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
                for target in link.targets if link else ():
                    if target.name:
                        used.setdefault(target, []).append(Target(*file, use.line))
        return used

    # --- one step each ---

    def _module_level(self, file: File, name: str, hops: int) -> tuple[Target, ...]:
        """Return what a bare name means at the level of a module."""
        names = self._files.get(file)
        if names is None or hops == 0:
            return ()
        found = [Target(*file, line, name) for line in names.defined.get(name, ())]
        for module, taken in self._bound[file].get(name, ()):
            if taken:
                found += self._in_module(module, taken, hops - 1)
            elif module in self._modules:
                found.append(Target(*self._modules[module], 1))
        for module in self._stars.get(file, ()):
            if not found and not name.startswith("_") and module in self._modules:
                found += self._module_level(self._modules[module], name, hops - 1)
        return tuple(dict.fromkeys(found))

    def _in_module(self, module: str, name: str, hops: int) -> tuple[Target, ...]:
        """Return what ``module.name`` means: a definition, or a module of a package."""
        below = f"{module}.{name}"
        home = self._modules.get(module)
        found = self._module_level(home, name, hops) if home else ()
        if not found and below in self._modules:
            found = (Target(*self._modules[below], 1),)
        return found

    def _in_modules(self, modules: list[str], name: str) -> Iterator[Target]:
        for module in modules:
            yield from self._in_module(module, name, MAX_HOPS)

    def _modules_named(self, file: File, head: str) -> list[str]:
        """Return the modules that a name stands for, by the file's imports."""
        modules = []
        for module, taken in self._bound[file].get(head, ()):
            whole = f"{module}.{taken}" if taken else module
            if whole in self._modules or whole in self._packages:
                modules.append(whole)
        return list(dict.fromkeys(modules))

    def _is_module(self, module: str, name: str) -> bool:
        whole = f"{module}.{name}"
        return whole in self._modules or whole in self._packages

    def _attribute(
        self, owners: tuple[Target, ...], attribute: str
    ) -> tuple[Target, ...]:
        """Return what classes among ``owners`` call ``attribute``."""
        found: list[Target] = []
        for owner in owners:
            file = (owner.upstream, owner.path)
            if owner.name and owner.name in self._files[file].bases:
                found += self._method(file, owner.name, attribute, MAX_HOPS)
        return tuple(dict.fromkeys(found))

    def _method(
        self, file: File, owner: str, name: str, hops: int
    ) -> tuple[Target, ...]:
        """Return a class's own method, or else the first that a base class has."""
        if hops == 0:
            return ()
        names = self._files[file]
        lines = names.defined.get(f"{owner}.{name}")
        if lines:
            return tuple(Target(*file, line, f"{owner}.{name}") for line in lines)
        for base in names.bases.get(owner, ()):
            link = self.resolve(file, base)
            for target in link.targets if link else ():
                inner = (target.upstream, target.path)
                if (inner, target.name) != (file, owner) and target.name:
                    found = self._method(inner, target.name, name, hops - 1)
                    if found:
                        return found
        return ()


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
