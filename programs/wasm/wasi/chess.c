// Counts the positions that legal moves of chess lead to, for positions whose numbers are published.
//
// usage: chess DEPTH
// arg: 2
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHITE = 8, BLACK = 16, PAWN = 1, KNIGHT, BISHOP, ROOK, QUEEN, KING };
enum { WHITE_SHORT = 1, WHITE_LONG = 2, BLACK_SHORT = 4, BLACK_LONG = 8 };

// Squares are 16 * rank + file, so that those beside the board have a bit of 0x88.
struct position {
    uint8_t board[128];
    uint8_t side, castling, en_passant; // en passant: 0x88 if there is none
    uint8_t kings[2];
};

struct move {
    uint8_t from, to, promoted, kind;
};

enum { QUIET, DOUBLE_STEP, EN_PASSANT, CASTLING };

static const int8_t directions[] = {1, -1, 16, -16, 17, 15, -15, -17};
static const int8_t jumps[] = {33, 31, 18, 14, -14, -18, -31, -33};

static int parse(struct position *p, const char *fen)
{
    static const char names[] = " pnbrqk";
    memset(p, 0, sizeof *p);
    int square = 0x70;
    for (; *fen && *fen != ' '; fen++) {
        const char *found = strchr(names, tolower((unsigned char)*fen));
        if (*fen == '/') {
            square = (square & 0x70) - 0x10;
        } else if (isdigit((unsigned char)*fen)) {
            square += *fen - '0';
        } else if (found && !(square & 0x88)) {
            int side = isupper((unsigned char)*fen) ? WHITE : BLACK;
            int piece = (int)(found - names);
            if (piece == KING) {
                p->kings[side == BLACK] = (uint8_t)square;
            }
            p->board[square++] = (uint8_t)(side | piece);
        } else {
            return 0;
        }
    }
    if (fen[0] != ' ' || (fen[1] != 'w' && fen[1] != 'b')) {
        return 0;
    }
    p->side = fen[1] == 'w' ? WHITE : BLACK;
    for (fen += 3; *fen && *fen != ' '; fen++) {
        static const char rights[] = "KQkq";
        const char *found = strchr(rights, *fen);
        if (found) {
            p->castling |= (uint8_t)(1 << (found - rights));
        }
    }
    p->en_passant = 0x88;
    if (*fen == ' ' && fen[1] >= 'a' && fen[1] <= 'h') {
        p->en_passant = (uint8_t)((fen[2] - '1') * 16 + fen[1] - 'a');
    }
    return 1;
}

static int is_attacked(const struct position *p, int square, int by)
{
    int step = by == WHITE ? 16 : -16;
    for (int side = -1; side <= 1; side += 2) {
        int from = square - step + side;
        if (!(from & 0x88) && p->board[from] == (by | PAWN)) {
            return 1;
        }
    }
    for (int i = 0; i < 8; i++) {
        int from = square + jumps[i];
        if (!(from & 0x88) && p->board[from] == (by | KNIGHT)) {
            return 1;
        }
        int slider = i < 4 ? ROOK : BISHOP, n = 0;
        for (from = square + directions[i]; !(from & 0x88); from += directions[i]) {
            int piece = p->board[from];
            if (piece == (by | slider) || piece == (by | QUEEN) || (n == 0 && piece == (by | KING))) {
                return 1;
            }
            if (piece) {
                break;
            }
            n++;
        }
    }
    return 0;
}

static struct move *add(struct move *m, int from, int to, int promoted, int kind)
{
    *m = (struct move){(uint8_t)from, (uint8_t)to, (uint8_t)promoted, (uint8_t)kind};
    return m + 1;
}

static struct move *add_pawn(struct move *m, int from, int to, int kind)
{
    if ((to & 0x70) != 0 && (to & 0x70) != 0x70) {
        return add(m, from, to, 0, kind);
    }
    for (int piece = KNIGHT; piece <= QUEEN; piece++) {
        m = add(m, from, to, piece, kind);
    }
    return m;
}

static struct move *pawn_moves(const struct position *p, struct move *m, int from)
{
    int step = p->side == WHITE ? 16 : -16, home = p->side == WHITE ? 0x10 : 0x60;
    int other = p->side ^ (WHITE | BLACK);
    if (!p->board[from + step]) {
        m = add_pawn(m, from, from + step, QUIET);
        if ((from & 0x70) == home && !p->board[from + 2 * step]) {
            m = add(m, from, from + 2 * step, 0, DOUBLE_STEP);
        }
    }
    for (int side = -1; side <= 1; side += 2) {
        int to = from + step + side;
        if (to & 0x88) {
            continue;
        }
        if (p->board[to] & other) {
            m = add_pawn(m, from, to, QUIET);
        } else if (to == p->en_passant) {
            m = add(m, from, to, 0, EN_PASSANT);
        }
    }
    return m;
}

static struct move *castling_moves(const struct position *p, struct move *m)
{
    int king = p->side == WHITE ? 0x04 : 0x74, other = p->side ^ (WHITE | BLACK);
    int rights = p->side == WHITE ? p->castling : p->castling >> 2;
    if (!(rights & 3) || is_attacked(p, king, other)) {
        return m;
    }
    const uint8_t *row = &p->board[king];
    if ((rights & 1) && !row[1] && !row[2] && !is_attacked(p, king + 1, other)) {
        m = add(m, king, king + 2, 0, CASTLING);
    }
    if ((rights & 2) && !row[-1] && !row[-2] && !row[-3] && !is_attacked(p, king - 1, other)) {
        m = add(m, king, king - 2, 0, CASTLING);
    }
    return m;
}

/// Moves that may leave the own king attacked.
static struct move *moves(const struct position *p, struct move *m)
{
    for (int from = 0; from < 128; from++) {
        int piece = p->board[from];
        if ((from & 0x88) || !(piece & p->side)) {
            continue;
        }
        piece &= 7;
        if (piece == PAWN) {
            m = pawn_moves(p, m, from);
            continue;
        }
        const int8_t *steps = piece == KNIGHT ? jumps : directions;
        int first = piece == BISHOP ? 4 : 0, last = piece == ROOK ? 4 : 8;
        for (int i = first; i < last; i++) {
            for (int to = from + steps[i]; !(to & 0x88) && !(p->board[to] & p->side); to += steps[i]) {
                m = add(m, from, to, 0, QUIET);
                if (p->board[to] || piece == KNIGHT || piece == KING) {
                    break;
                }
            }
        }
    }
    return castling_moves(p, m);
}

static int rights_lost(int square)
{
    switch (square) {
    case 0x00: return WHITE_LONG;
    case 0x04: return WHITE_LONG | WHITE_SHORT;
    case 0x07: return WHITE_SHORT;
    case 0x70: return BLACK_LONG;
    case 0x74: return BLACK_LONG | BLACK_SHORT;
    case 0x77: return BLACK_SHORT;
    default: return 0;
    }
}

/// Makes a move; 0 if it leaves the own king attacked.
static int make(struct position *p, struct move m)
{
    int piece = p->board[m.from], other = p->side ^ (WHITE | BLACK);
    p->board[m.from] = 0;
    p->board[m.to] = (uint8_t)(m.promoted ? p->side | m.promoted : piece);
    p->castling &= (uint8_t)~(rights_lost(m.from) | rights_lost(m.to));
    p->en_passant = m.kind == DOUBLE_STEP ? (uint8_t)((m.from + m.to) / 2) : 0x88;
    if (m.kind == EN_PASSANT) {
        p->board[(m.from & 0x70) | (m.to & 7)] = 0;
    } else if (m.kind == CASTLING) {
        int is_short = m.to > m.from;
        int rook = is_short ? m.from + 3 : m.from - 4;
        p->board[is_short ? m.from + 1 : m.from - 1] = p->board[rook];
        p->board[rook] = 0;
    }
    if ((piece & 7) == KING) {
        p->kings[p->side == BLACK] = m.to;
    }
    int king = p->kings[p->side == BLACK];
    p->side = (uint8_t)other;
    return !is_attacked(p, king, other);
}

static uint64_t count(const struct position *p, int depth)
{
    struct move list[256], *end = moves(p, list);
    uint64_t n = 0;
    for (struct move *m = list; m < end; m++) {
        struct position next = *p;
        if (make(&next, *m)) {
            n += depth == 1 ? 1 : count(&next, depth - 1);
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *fen;
        uint32_t counts[4];
    } positions[] = {
        {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", {20, 400, 8902, 197281}},
        {"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
         {48, 2039, 97862, 4085603}},
        {"8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", {14, 191, 2812, 43238}},
        {"r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
         {6, 264, 9467, 422333}},
        {"rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", {44, 1486, 62379, 2103487}},
    };
    int depth = argc > 1 ? atoi(argv[1]) : 3;
    if (depth < 1 || depth > 4) {
        fputs("chess: the depth is 1 to 4\n", stderr);
        return 2;
    }
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        struct position p;
        if (!parse(&p, positions[i].fen)) {
            printf("cannot read %s\n", positions[i].fen);
            return 1;
        }
        for (int d = 1; d <= depth; d++) {
            unsigned long long n = count(&p, d);
            int is_right = n == positions[i].counts[d - 1];
            printf("%zu.%d: %llu%s\n", i + 1, d, n, is_right ? "" : ", which is wrong");
            n_wrong += !is_right;
        }
    }
    return n_wrong != 0;
}
