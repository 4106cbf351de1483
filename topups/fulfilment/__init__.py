"""The work on a top-up order: states, moves, refunds and proofs of delivery."""
