"""The programming language of a source file: by its name, its ending, or the interpreter that its first line names.

Names are those of GitHub's Linguist. An ending that several languages share has the more common one (".h": C, ".m":
Objective-C); one that is not listed has none.
"""

from __future__ import annotations

import re
from typing import Final

_ENDINGS: Final = {
    "Ada": "adb ads",
    "Agda": "agda",
    "Assembly": "asm s",
    "AWK": "awk",
    "Batchfile": "bat cmd",
    "Bazel": "bzl bazel",
    "C": "c h",
    "C#": "cs csx",
    "C++": "cc cpp cxx c++ hh hpp hxx h++ ipp tpp",
    "Clojure": "clj cljc cljs edn",
    "CMake": "cmake",
    "COBOL": "cob cbl",
    "CoffeeScript": "coffee",
    "Common Lisp": "lisp lsp cl",
    "Crystal": "cr",
    "CSS": "css",
    "CUDA": "cu cuh",
    "D": "d",
    "Dart": "dart",
    "Dockerfile": "dockerfile",
    "Elixir": "ex exs",
    "Elm": "elm",
    "Emacs Lisp": "el",
    "Erlang": "erl hrl",
    "F#": "fs fsi fsx",
    "Fortran": "f f77 f90 f95 f03 f08 for",
    "GLSL": "glsl vert frag",
    "Go": "go",
    "Gradle": "gradle",
    "GraphQL": "graphql gql",
    "Groovy": "groovy",
    "Haskell": "hs lhs",
    "HCL": "hcl tf tfvars",
    "HTML": "html htm xhtml",
    "Idris": "idr",
    "INI": "ini cfg conf",
    "Isabelle": "thy",
    "Java": "java",
    "JavaScript": "js cjs mjs jsx",
    "JSON": "json",
    "Julia": "jl",
    "Jupyter Notebook": "ipynb",
    "Kotlin": "kt kts",
    "Lean": "lean",
    "Less": "less",
    "Lua": "lua",
    "Makefile": "mk mak",
    "Markdown": "md markdown mdx",
    "MATLAB": "matlab",
    "Nim": "nim",
    "Nix": "nix",
    "Objective-C": "m mm",
    "OCaml": "ml mli",
    "Pascal": "pas pp",
    "Perl": "pl pm",
    "PHP": "php phtml",
    "PowerShell": "ps1 psm1",
    "Prolog": "pro prolog",
    "Protocol Buffer": "proto",
    "PureScript": "purs",
    "Python": "py pyi pyx pyw",
    "R": "r rmd",
    "Racket": "rkt",
    "reStructuredText": "rst",
    "Ruby": "rb rake gemspec",
    "Rust": "rs",
    "Scala": "scala sc sbt",
    "Scheme": "scm ss",
    "SCSS": "scss sass",
    "Shell": "sh bash zsh ksh fish",
    "Solidity": "sol",
    "SPARQL": "sparql rq",
    "SQL": "sql",
    "Standard ML": "sml sig fun",
    "Svelte": "svelte",
    "Swift": "swift",
    "SystemVerilog": "sv svh",
    "Tcl": "tcl",
    "TeX": "tex sty cls bib",
    "Thrift": "thrift",
    "TOML": "toml",
    "TypeScript": "ts tsx mts cts",
    "Verilog": "v vh",
    "VHDL": "vhd vhdl",
    "Vim Script": "vim",
    "Visual Basic": "vb bas vbs",
    "Vue": "vue",
    "WebAssembly": "wat wast",
    "XML": "xml xsd xsl xslt svg",
    "YAML": "yaml yml",
    "Zig": "zig",
}
_BY_ENDING: Final = {ending: language for language, endings in _ENDINGS.items() for ending in endings.split()}
_BY_NAME: Final = {
    "makefile": "Makefile",
    "gnumakefile": "Makefile",
    "dockerfile": "Dockerfile",
    "cmakelists.txt": "CMake",
    "rakefile": "Ruby",
    "gemfile": "Ruby",
    "build": "Bazel",
    "workspace": "Bazel",
    "jenkinsfile": "Groovy",
    "vagrantfile": "Ruby",
}
_INTERPRETERS: Final = {
    "python": "Python",
    "sh": "Shell",
    "bash": "Shell",
    "zsh": "Shell",
    "dash": "Shell",
    "ksh": "Shell",
    "perl": "Perl",
    "ruby": "Ruby",
    "node": "JavaScript",
    "php": "PHP",
    "lua": "Lua",
    "rscript": "R",
    "awk": "AWK",
    "tclsh": "Tcl",
}
_SHEBANG: Final = re.compile(
    rb"#![ \t]*[^ \t\r\n]*?([A-Za-z]+)[0-9.]*(?:[ \t]+(?:-S[ \t]+)?([A-Za-z]+)[0-9.]*)?[ \t\r\n]"
)
_PACKED: Final = (".gz", ".zst", ".bz2", ".xz", ".lz4")


def language_of(name: str, content: bytes) -> str | None:
    """Return the language of the file `name` that holds `content`, None where nothing tells."""
    lower = name.lower()
    for ending in _PACKED:
        lower = lower.removesuffix(ending)
    if lower in _BY_NAME:
        return _BY_NAME[lower]
    _, dot, ending = lower.rpartition(".")
    if dot and ending in _BY_ENDING:
        return _BY_ENDING[ending]
    found = _SHEBANG.match(content[:256] + b"\n")
    if found is None:
        return None
    first, second = found[1].decode().lower(), (found[2] or b"").decode().lower()
    return _INTERPRETERS.get(second if first == "env" else first)
