"""Questions whose keys are computed or anchored, never typed.

``bank`` reads questions, ``variant`` makes one of them concrete, ``grade`` of the
variant marks an answer, ``session`` leads through a quiz and ``history`` keeps what
was answered. Only ``history`` touches a disk.
"""
