"""The native part: one build over the stable ABI, left out where it cannot be built."""

from pathlib import Path

from setuptools import Extension, setup

HEADER = Path("../../crates/libhob/include")

setup(
    ext_modules=[
        Extension(
            "hob._native",
            [str(source) for source in sorted(Path("src/hob").glob("_*.c"))],
            include_dirs=["src/hob", str(HEADER)],
            depends=["src/hob/_native.h"],
            define_macros=[("Py_LIMITED_API", "0x03090000")],
            libraries=["dl"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
