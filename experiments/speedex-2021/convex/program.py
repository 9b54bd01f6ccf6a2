"""The batch market as a convex program, on a general solver.

Devanur, Garg and Vegh (2016) give a convex program whose optimum, always zero, is an equilibrium of a linear exchange market. A limit
order is an agent of such a market: it brings `amount` of one asset and values a unit of it as `limit` units of another. With prices p,
for offer i (sell a, buy b, amount e, limit r) the spending y_i on b out of its budget e p_a, and its best utility per money 1 / beta_i:

    minimise    sum_i  e p_a log(p_a / beta_i)  -  (e p_a - y_i) log r
    subject to  0 <= y_i <= e p_a,   r beta_i <= p_a,   beta_i <= p_b,
                of every asset as much money is spent on as is given for it,   sum p = number of assets.

What an offer does not spend on b it keeps. The objective is never negative, because log(p / beta) is at least log of the utility per
unit of whatever the offer holds; it is zero when every offer holds nothing but its best.

Input: JSON {"asset_count": N, "offers": [[sell, buy, limit, amount], ...]}; output: one line of JSON.
"""

import argparse
import importlib.metadata
import json
import sys
import time


def check():
    import clarabel  # noqa: F401
    import cvxpy
    import ecos  # noqa: F401

    versions = {name: importlib.metadata.version(name) for name in ("cvxpy", "clarabel", "ecos")}
    assert {"CLARABEL", "ECOS"} <= set(cvxpy.installed_solvers()), cvxpy.installed_solvers()
    print(json.dumps(versions))


def solve(path, solver):
    import cvxpy as cp
    import numpy as np
    import scipy.sparse as sp

    with open(path, encoding="utf-8") as file:
        market = json.load(file)
    n, offers = market["asset_count"], market["offers"]
    count = len(offers)
    sell = np.array([offer[0] for offer in offers])
    buy = np.array([offer[1] for offer in offers])
    limit = np.array([offer[2] for offer in offers], dtype=float)
    amount = np.array([offer[3] for offer in offers], dtype=float)
    # Count every asset in units of all of it that is for sale: sums of amounts become one, whatever the assets are worth.
    supply = np.bincount(sell, weights=amount, minlength=n)
    if np.any(supply == 0):
        raise SystemExit("an asset is offered by nobody: leave it out of the market before exporting it")
    amount = amount / supply[sell]
    limit = limit * supply[sell] / supply[buy]

    begin = time.perf_counter()
    rows = np.arange(count)
    of_sell = sp.csr_matrix((np.ones(count), (rows, sell)), shape=(count, n))
    of_buy = sp.csr_matrix((np.ones(count), (rows, buy)), shape=(count, n))
    prices, spending, beta = cp.Variable(n), cp.Variable(count, nonneg=True), cp.Variable(count)
    budget = cp.multiply(amount, of_sell @ prices)
    unspent = budget - spending
    objective = cp.sum(cp.multiply(amount, cp.rel_entr(of_sell @ prices, beta))) - np.log(limit) @ unspent
    constraints = [
        unspent >= 0,
        cp.multiply(limit, beta) <= of_sell @ prices,
        beta <= of_buy @ prices,
        (of_sell - of_buy).T @ spending == 0,
        cp.sum(prices) == n,
    ]
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=solver)
    seconds = time.perf_counter() - begin
    found = prices.value is not None and problem.status in ("optimal", "optimal_inaccurate")
    return {
        "status": problem.status,
        "total_seconds": seconds,
        "solver_seconds": problem.solver_stats.solve_time if problem.solver_stats else None,
        "iterations": problem.solver_stats.num_iters if problem.solver_stats else None,
        "objective": float(problem.value) if found else None,
        "prices": [float(price) for price in prices.value / supply] if found else None,
    }


def main():
    parser = argparse.ArgumentParser(description="Solve an exported batch market as a convex program.")
    parser.add_argument("--check", action="store_true", help="print the versions of the packages")
    parser.add_argument("--solver", choices=["CLARABEL", "ECOS"], default="CLARABEL")
    parser.add_argument("market", nargs="?", help="the exported market, JSON")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    if not arguments.market:
        parser.error("give the file of an exported market, or --check")
    try:
        result = solve(arguments.market, arguments.solver)
    except Exception as error:  # A general solver gives up in many ways; all of them are a result here.
        result = {"status": f"failed: {type(error).__name__}: {str(error)[:200]}"}
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
