"""What each feature of a place weighs: logistic regressions, written by their fit.

Fitted to histories of releases, walked step by step, and to refactorings made on real
files, none of them those that the benchmark reports on. Not a figure here was chosen by
hand.
"""

PLACE = {
    "share": -0.029,
    "kept": 1.074,
    "all kept": -0.139,
    "start exact, tight": 1.162,
    "start exact, loose": 0.906,
    "start like, tight": 1.073,
    "start like, loose": 0.029,
    "start guess, tight": -0.958,
    "start slack": -0.567,
    "start margin": -0.143,
    "end margin": 1.532,
    "end exact, tight": 1.846,
    "end exact, loose": 1.458,
    "end like, tight": 0.075,
    "end like, loose": 0.225,
    "end guess, tight": -0.170,
    "end slack": -0.565,
    "frame": 1.891,
    "named": 0.845,
    "whole": -0.286,
    "around": 1.621,
    "length": 1.430,
    "elsewhere": -1.984,
    "taken": -5.666,
    "elsewhere, named": -0.678,
    "elsewhere, around": -0.033,
    "elsewhere, kept": -1.988,
    "elsewhere, frame": -0.668,
    "light": -0.387,
    "elsewhere, light": -1.877,
    "elsewhere, path": 3.526,
    "elsewhere, alone": 0.990,
    "elsewhere, whole": 0.589,
    "rival": -4.299,
    "light, around": 0.235,
    "bias": -2.636,
}
"""Whether a place is exactly the right one."""

GONE = {
    "chance": -3.605,
    "kept": -1.828,
    "share": -1.215,
    "taken": 1.699,
    "elsewhere": 2.249,
    "light": 0.995,
    "around": -1.472,
    "no place": 1.598,
    "ends": -0.729,
    "bias": 1.904,
}
"""Whether nothing is the right one, told from the likeliest place."""
