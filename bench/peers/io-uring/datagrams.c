// What datagrams cost by io_uring and by the calls that our relays use. 32 packets of 528 bytes go to ten sockets on loopback that
// nobody reads, and 64 packets are received, by
//
//   sendmmsg            one call, a message for each datagram
//   sendmmsg, segments  one call, a message for each socket, which the kernel cuts (UDP_SEGMENT)
//   io_uring            one call, an entry for each datagram, and its completions reaped
//   io_uring, segments  one call, an entry for each socket
//   recvmmsg, io_uring  64 datagrams that wait in a socket
//
// Prints nanoseconds per datagram: the median over many rounds, in which the ways take turns. No library is needed: io_uring's two
// calls and its rings are used as its manual describes them.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PACKETS = 32, CHILDREN = 10, BYTES = 528, RECEIVED = 64, ENTRIES = 512, WAYS = 6 };

static void check(int is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "datagrams: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int bound(struct sockaddr_in *name, int joins) {
    int s = socket(AF_INET, SOCK_DGRAM, 0), one = 1, room = 8 << 20;
    check(s >= 0, "socket");
    setsockopt(s, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(s, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (joins) check(setsockopt(s, SOL_UDP, UDP_GRO, &one, sizeof one) == 0, "UDP_GRO");
    memset(name, 0, sizeof *name);
    name->sin_family = AF_INET;
    name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    check(bind(s, (struct sockaddr *)name, sizeof *name) == 0, "bind");
    socklen_t length = sizeof *name;
    check(getsockname(s, (struct sockaddr *)name, &length) == 0, "getsockname");
    return s;
}

// io_uring's rings.
static struct {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *done;
} ring;

static void open_ring(void) {
    struct io_uring_params p = {0};
    // The fastest setup that needs no spinning thread of the kernel.
    p.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    ring.fd = syscall(SYS_io_uring_setup, ENTRIES, &p);
    if (ring.fd < 0) {
        memset(&p, 0, sizeof p);
        ring.fd = syscall(SYS_io_uring_setup, ENTRIES, &p);
    }
    check(ring.fd >= 0, "io_uring_setup: this kernel has no io_uring, or does not allow it here");
    size_t sq = p.sq_off.array + p.sq_entries * sizeof(unsigned), cq = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *of_sq = mmap(0, sq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
    char *of_cq = mmap(0, cq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_CQ_RING);
    ring.entries = mmap(0, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd,
                        IORING_OFF_SQES);
    check(of_sq != MAP_FAILED && of_cq != MAP_FAILED && ring.entries != MAP_FAILED, "mmap");
    ring.sq_tail = (unsigned *)(of_sq + p.sq_off.tail);
    ring.sq_mask = (unsigned *)(of_sq + p.sq_off.ring_mask);
    ring.sq_array = (unsigned *)(of_sq + p.sq_off.array);
    ring.cq_head = (unsigned *)(of_cq + p.cq_off.head);
    ring.cq_tail = (unsigned *)(of_cq + p.cq_off.tail);
    ring.cq_mask = (unsigned *)(of_cq + p.cq_off.ring_mask);
    ring.done = (struct io_uring_cqe *)(of_cq + p.cq_off.cqes);
}

// Submits all in one call; gives the bytes that moved.
static long by_ring(int operation, int socket, struct mmsghdr *messages, unsigned count) {
    unsigned tail = *ring.sq_tail;
    for (unsigned at = 0; at < count; at++, tail++) {
        unsigned place = tail & *ring.sq_mask;
        struct io_uring_sqe *entry = &ring.entries[place];
        memset(entry, 0, sizeof *entry);
        entry->opcode = operation;
        entry->fd = socket;
        entry->addr = (unsigned long)&messages[at].msg_hdr;
        entry->len = 1;
        entry->user_data = at;
        ring.sq_array[place] = place;
    }
    atomic_store_explicit((_Atomic unsigned *)ring.sq_tail, tail, memory_order_release);
    long taken = syscall(SYS_io_uring_enter, ring.fd, count, count, IORING_ENTER_GETEVENTS, 0, 0);
    check(taken == (long)count, "io_uring_enter");
    long bytes = 0;
    unsigned head = *ring.cq_head, seen = 0;
    while (seen < count) {
        unsigned end = atomic_load_explicit((_Atomic unsigned *)ring.cq_tail, memory_order_acquire);
        if (head == end) {
            check(syscall(SYS_io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS, 0, 0) >= 0, "io_uring_enter");
            continue;
        }
        for (; head != end; head++, seen++) {
            int result = ring.done[head & *ring.cq_mask].res;
            errno = result < 0 ? -result : 0;
            check(result > 0, "a datagram by io_uring");
            bytes += result;
        }
        atomic_store_explicit((_Atomic unsigned *)ring.cq_head, head, memory_order_release);
    }
    return bytes;
}

static long by_calls(int socket, struct mmsghdr *messages, unsigned count) {
    long bytes = 0;
    for (unsigned at = 0; at < count;) {
        int taken = sendmmsg(socket, messages + at, count - at, 0);
        check(taken > 0, "sendmmsg");
        for (int one = 0; one < taken; one++) bytes += messages[at + one].msg_len;
        at += taken;
    }
    return bytes;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 2000;
    int joins = argc > 2 && strcmp(argv[2], "joined") == 0;
    if (rounds < 10 || rounds > 1000000 || argc > 3 || (argc > 2 && !joins && strcmp(argv[2], "single") != 0)) {
        fprintf(stderr, "usage: datagrams [ROUNDS, from 10 to 1000000] [single|joined]\n");
        return 2;
    }
    static unsigned char packets[PACKETS][BYTES], taken[RECEIVED][BYTES + 1];
    struct sockaddr_in names[CHILDREN], own, other;
    for (int child = 0; child < CHILDREN; child++) bound(&names[child], joins);
    int out = bound(&own, 0), in = bound(&other, 0);

    // One message for each datagram, and one for each child.
    static struct iovec single[PACKETS], whole[PACKETS], room[RECEIVED];
    static struct mmsghdr each[PACKETS * CHILDREN], cut[CHILDREN], fill[RECEIVED], come[RECEIVED];
    static struct { _Alignas(8) char bytes[CMSG_SPACE(sizeof(unsigned short))]; } controls[CHILDREN];
    for (int p = 0; p < PACKETS; p++) {
        memset(packets[p], p, BYTES);
        single[p] = whole[p] = (struct iovec){packets[p], BYTES};
    }
    for (int c = 0; c < CHILDREN; c++) {
        for (int p = 0; p < PACKETS; p++)
            each[c * PACKETS + p].msg_hdr = (struct msghdr){&names[c], sizeof names[c], &single[p], 1, 0, 0, 0};
        cut[c].msg_hdr = (struct msghdr){&names[c], sizeof names[c], whole, PACKETS, controls[c].bytes, sizeof controls[c].bytes, 0};
        struct cmsghdr *control = CMSG_FIRSTHDR(&cut[c].msg_hdr);
        control->cmsg_level = SOL_UDP;
        control->cmsg_type = UDP_SEGMENT;
        control->cmsg_len = CMSG_LEN(sizeof(unsigned short));
        unsigned short segment = BYTES;
        memcpy(CMSG_DATA(control), &segment, sizeof segment);
    }
    for (int r = 0; r < RECEIVED; r++) {
        fill[r].msg_hdr = (struct msghdr){&other, sizeof other, &single[r % PACKETS], 1, 0, 0, 0};
        room[r] = (struct iovec){taken[r], sizeof taken[r]};
        come[r].msg_hdr = (struct msghdr){0, 0, &room[r], 1, 0, 0, 0};
    }
    open_ring();

    const char *ways[WAYS] = {"sendmmsg", "sendmmsg, segments", "io_uring", "io_uring, segments", "recvmmsg", "io_uring receive"};
    double *took[WAYS];
    for (int way = 0; way < WAYS; way++) check((took[way] = malloc(rounds * sizeof(double))) != 0, "memory");
    const long sent = (long)PACKETS * CHILDREN * BYTES, received = (long)RECEIVED * BYTES;
    for (long round = 0; round < rounds; round++) {
        for (int way = 0; way < WAYS; way++) {
            if (way >= 4) check(by_calls(out, fill, RECEIVED) == received, "filling a socket");
            double began = now_ns();
            long bytes = 0;
            switch (way) {
            case 0: bytes = by_calls(out, each, PACKETS * CHILDREN); break;
            case 1: bytes = by_calls(out, cut, CHILDREN); break;
            case 2: bytes = by_ring(IORING_OP_SENDMSG, out, each, PACKETS * CHILDREN); break;
            case 3: bytes = by_ring(IORING_OP_SENDMSG, out, cut, CHILDREN); break;
            case 4: {
                int came = recvmmsg(in, come, RECEIVED, 0, 0);
                check(came == RECEIVED, "recvmmsg");
                for (int one = 0; one < came; one++) bytes += come[one].msg_len;
                break;
            }
            default: bytes = by_ring(IORING_OP_RECVMSG, in, come, RECEIVED);
            }
            double ns = now_ns() - began;
            check(bytes == (way < 4 ? sent : received), "bytes are missing");
            took[way][round] = ns / (way < 4 ? PACKETS * CHILDREN : RECEIVED);
        }
    }
    for (int way = 0; way < WAYS; way++) {
        qsort(took[way], rounds, sizeof(double), ascending);
        printf("%-20s %8.1f ns a datagram (5 %% to 95 %%: %.1f to %.1f)\n", ways[way], took[way][rounds / 2], took[way][rounds / 20],
               took[way][rounds * 19 / 20]);
    }
    return 0;
}
