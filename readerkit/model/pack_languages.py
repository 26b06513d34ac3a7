"""Languages whose grammars the language pack has, by the endings of their files.

The pack, before its version 1, is one package with every grammar inside and no queries:
what is a comment, a string, a keyword or a definition is told from the names of a
grammar's own nodes (``anchors.node_kinds``).
"""

from __future__ import annotations

PACK = "tree_sitter_language_pack"
PROGRAMS = """
actionscript .as | ada .adb .ads | agda .agda | apex .cls .trigger | arduino .ino
asm .asm .s | bicep .bicep | bitbake .bb .bbappend | bsl .bsl | cairo .cairo
chatito .chatito | clarity .clar | clojure .clj .cljs .cljc | cmake .cmake
cobol .cob .cbl | commonlisp .lisp .lsp .cl | d .d | dart .dart | elm .elm
erlang .erl .hrl | fennel .fnl | firrtl .fir | fish .fish
fortran .f90 .f95 .f03 .f08
fsharp .fs .fsx | fsharp_signature .fsi | func .fc | gdscript .gd | gleam .gleam
glsl .glsl .vert .frag .comp | gn .gn .gni | graphql .graphql .gql
groovy .groovy .gradle
hack .hack | hare .ha | haxe .hx | hcl .hcl | heex .heex | hlsl .hlsl | ispc .ispc
janet .janet | jsonnet .jsonnet .libsonnet | llvm .ll | luau .luau | magik .magik
make .mk .mak | matlab .m | meson .build | nim .nim .nims | nix .nix | nqc .nqc
objc .mm | ocaml_interface .mli | odin .odin | pascal .pas .pp | perl .pl .pm
pony .pony | powershell .ps1 .psm1 | prisma .prisma | proto .proto | puppet .pupp
purescript .purs | qmljs .qml | r .r | racket .rkt | re2c .re | rego .rego
scheme .scm .ss | smali .smali | smithy .smithy | solidity .sol | sparql .rq .sparql
sql .sql | squirrel .nut | starlark .bzl .star | svelte .svelte | swift .swift
tablegen .td | tcl .tcl | terraform .tf .tfvars | thrift .thrift | twig .twig
uxntal .tal | v .v .vsh | verilog .sv .svh .vh | vhdl .vhd .vhdl | vim .vim | vue .vue
wast .wast | wat .wat | wgsl .wgsl | yuck .yuck
"""
TEXTS = """
beancount .beancount | bibtex .bib | css .css | csv .csv | doxygen .dox | dtd .dtd
gitattributes .gitattributes | gitignore .gitignore | html .html .htm | hyprlang .hl
ini .ini .cfg | json .json | kconfig .kconfig | kdl .kdl | latex .tex .sty
linkerscript .ld .lds | markdown .md | mermaid .mmd | ninja .ninja | org .org
pem .pem .crt | pgn .pgn | po .po .pot | properties .properties | psv .psv | ron .ron
rst .rst | scss .scss | toml .toml | tsv .tsv | typst .typ | udev .rules
ungrammar .ungram | xml .xml .xsd .svg
"""
_TITLES = {
    "actionscript": "ActionScript", "asm": "Assembly", "bibtex": "BibTeX",
    "cmake": "CMake", "cobol": "COBOL", "commonlisp": "Common Lisp", "css": "CSS",
    "csv": "CSV", "dtd": "DTD", "fsharp": "F#", "fsharp_signature": "F# signatures",
    "gdscript": "GDScript", "glsl": "GLSL", "graphql": "GraphQL", "hcl": "HCL",
    "hlsl": "HLSL", "html": "HTML", "ini": "INI", "json": "JSON", "kdl": "KDL",
    "latex": "LaTeX", "llvm": "LLVM", "matlab": "MATLAB", "objc": "Objective-C++",
    "ocaml_interface": "OCaml interfaces", "po": "PO", "powershell": "PowerShell",
    "proto": "Protocol Buffers", "purescript": "PureScript", "qmljs": "QML",
    "rst": "reStructuredText", "scss": "SCSS", "sql": "SQL", "sparql": "SPARQL",
    "tablegen": "TableGen", "toml": "TOML", "tsv": "TSV", "vhdl": "VHDL", "xml": "XML",
    "wgsl": "WGSL", 
}  # fmt: skip


def rows(table: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the grammars of a table: what the pack calls each, its title, endings."""
    found = []
    for row in table.replace("\n", "|").split("|"):
        if words := row.split():
            name, *endings = words
            found.append((name, _TITLES.get(name, name.title()), tuple(endings)))
    return found
