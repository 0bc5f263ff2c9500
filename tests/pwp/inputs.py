"""Inputs that a table evaluator could get wrong, as uint32 bits."""

from __future__ import annotations

import numpy as np


def special_bits():
    """Return zeros, infinities, NaNs with payloads, denormals and the ends of the range."""
    magnitudes = [0, 1, 2, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000]
    magnitudes += [0x7F800001, 0x7FA00001, 0x7FBFFFFF, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF]
    words = np.array(magnitudes + list(range(3, 0x00800000, 0x00012345)), np.uint32)
    return np.concatenate([words, words | np.uint32(0x80000000)])


def edge_bits(profile):
    """Return every octave and section edge and threshold of a profile, +-2 ulps, both signs."""
    edges = [0]
    for octave in (*profile.pos_exponents, *profile.neg_exponents):
        first = (octave.exponent + 127) << 23
        width = 1 << (23 - octave.extract_size)
        edges += [first + i * width for i in range(len(octave.sections) + 1)]
        edges += [section.x & 0x7FFFFFFF for section in octave.sections]
    edges += [profile.clamp(n).magnitude for n in ("pos_low", "pos_high", "neg_low", "neg_high")]
    edges += [exponent << 23 for exponent in range(256)]
    near = np.array(sorted(set(edges)), np.int64)[:, None] + np.arange(-2, 3)
    words = (near.reshape(-1) & 0x7FFFFFFF).astype(np.uint32)
    return np.concatenate([words, words | np.uint32(0x80000000)])


def random_bits(count, seed=0):
    """Return patterns of which every bit is random."""
    return np.random.default_rng(seed).integers(0, 1 << 32, count, np.uint64).astype(np.uint32)


def normal_bits(count, seed=0):
    """Return normally distributed values of several scales."""
    generator = np.random.default_rng(seed)
    scales = np.float32(2.0) ** generator.integers(-20, 7, count).astype(np.float32)
    return (generator.standard_normal(count).astype(np.float32) * scales).view(np.uint32)


def all_kinds(profile, count, seed=0):
    """Return at least `count` inputs of every kind above."""
    fixed = [special_bits(), edge_bits(profile)]
    rest = max(count - sum(map(len, fixed)), 0)
    half = rest // 2
    return np.concatenate([*fixed, random_bits(half, seed), normal_bits(rest - half, seed)])
