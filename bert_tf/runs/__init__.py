"""Many runs and one table: grids, studies, successive halving, benchmarks."""
