// GLPK on the linear program of a batch's trade amounts: reads one problem, solves it several times, prints times and the objective.
//
// The problem, in text: a line "ASSETS ARCS COMMISSION_EXPONENT", then for each arc a line "FROM TO LOWER UPPER" with the value that may
// flow from one asset to another. Maximise the sum of flows within their bounds, such that of each asset at least the share
// 1 - 2^-COMMISSION_EXPONENT of the value bought is sold (all of it where the exponent is 0).
//
// It is solved as SPEEDEX solves it: one column per pair, one row per asset, glp_simplex (primal) with the presolver. Timed is glp_simplex
// alone; loading the problem, which costs GLPK time too, is timed beside it.

#include <glpk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void fail(const char *text) {
    fprintf(stderr, "glpk peer: %s\n", text);
    exit(2);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct arc {
    int from, to;
    double lower, upper;
};

static glp_prob *load(int assets, int arcs, const struct arc *arc, double keeps) {
    glp_prob *problem = glp_create_prob();
    glp_set_obj_dir(problem, GLP_MAX);
    glp_add_rows(problem, assets);
    glp_add_cols(problem, arcs);
    for (int row = 1; row <= assets; row++) glp_set_row_bnds(problem, row, GLP_LO, 0.0, 0.0);
    int *rows = malloc(sizeof *rows * (2 * (size_t)arcs + 1)), *columns = malloc(sizeof *columns * (2 * (size_t)arcs + 1));
    double *values = malloc(sizeof *values * (2 * (size_t)arcs + 1));
    if (!rows || !columns || !values) fail("out of memory: free some, then run this again");
    for (int i = 0; i < arcs; i++) {
        glp_set_col_bnds(problem, i + 1, arc[i].lower < arc[i].upper ? GLP_DB : GLP_FX, arc[i].lower, arc[i].upper);
        glp_set_obj_coef(problem, i + 1, 1.0);
        rows[2 * i + 1] = arc[i].from + 1, columns[2 * i + 1] = i + 1, values[2 * i + 1] = 1.0;
        rows[2 * i + 2] = arc[i].to + 1, columns[2 * i + 2] = i + 1, values[2 * i + 2] = -keeps;
    }
    glp_load_matrix(problem, 2 * arcs, rows, columns, values);
    free(rows), free(columns), free(values);
    return problem;
}

int main(int argc, char **argv) {
    if (argc < 2) fail("usage: solve FILE [--rounds N] [--method primal|dual]");
    int rounds = 5, method = GLP_PRIMAL;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--rounds")) rounds = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--method")) method = strcmp(argv[i + 1], "dual") ? GLP_PRIMAL : GLP_DUAL;
        else fail("unknown option; usage: solve FILE [--rounds N] [--method primal|dual]");
    }
    if (rounds < 1 || rounds > 10000) fail("--rounds takes 1 to 10000");
    FILE *file = fopen(argv[1], "r");
    if (!file) fail("the file does not open: give the path of a problem");
    int assets, arcs, exponent;
    if (fscanf(file, "%d %d %d", &assets, &arcs, &exponent) != 3 || assets < 1 || arcs < 1 || exponent < 0 || exponent > 60)
        fail("the first line is not ASSETS ARCS COMMISSION_EXPONENT");
    struct arc *arc = malloc(sizeof *arc * (size_t)arcs);
    double *solve_ms = malloc(sizeof *solve_ms * (size_t)rounds), *load_ms = malloc(sizeof *load_ms * (size_t)rounds);
    if (!arc || !solve_ms || !load_ms) fail("out of memory: free some, then run this again");
    for (int i = 0; i < arcs; i++) {
        struct arc *a = &arc[i];
        int read = fscanf(file, "%d %d %lf %lf", &a->from, &a->to, &a->lower, &a->upper);
        if (read != 4 || a->from < 0 || a->from >= assets || a->to < 0 || a->to >= assets || a->from == a->to)
            fail("a line is not FROM TO LOWER UPPER between two different assets");
    }
    fclose(file);
    double keeps = exponent ? 1.0 - 1.0 / (double)(1ULL << exponent) : 1.0;
    glp_term_out(GLP_OFF);
    double objective = 0.0;
    for (int round = 0; round < rounds; round++) {
        double start = now_ms();
        glp_prob *problem = load(assets, arcs, arc, keeps);
        load_ms[round] = now_ms() - start;
        glp_smcp options;
        glp_init_smcp(&options);
        options.msg_lev = GLP_MSG_OFF;
        options.presolve = GLP_ON;
        options.meth = method;
        start = now_ms();
        int failed = glp_simplex(problem, &options);
        solve_ms[round] = now_ms() - start;
        // With the presolver on, no feasible point is an error code of its own.
        if (failed || glp_get_status(problem) != GLP_OPT) fail("GLPK found no optimum: the bounds of this problem can not hold");
        objective = glp_get_obj_val(problem);
        glp_delete_prob(problem);
    }
    qsort(solve_ms, (size_t)rounds, sizeof *solve_ms, by_value);
    qsort(load_ms, (size_t)rounds, sizeof *load_ms, by_value);
    printf("{\"peer\": \"glpk\", \"version\": \"%s\", \"method\": \"%s\", \"assets\": %d, \"arcs\": %d, \"rounds\": %d, "
           "\"solve_ms_min\": %.6f, \"solve_ms_median\": %.6f, \"load_ms_median\": %.6f, \"objective\": %.6f}\n",
           glp_version(), method == GLP_PRIMAL ? "primal" : "dual", assets, arcs, rounds, solve_ms[0], solve_ms[rounds / 2],
           load_ms[rounds / 2], objective);
    free(arc), free(solve_ms), free(load_ms);
    return 0;
}
