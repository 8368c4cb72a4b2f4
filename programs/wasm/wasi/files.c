// What <stdio.h>, <dirent.h> and <sys/stat.h> do with files of a directory: makes, reads, appends, renames,
// links, lists and removes them, and leaves the directory as it was. Outside of it nothing can be reached.
//
// usage: files DIRECTORY
// arg: work
// dir: work
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[2][512];
static const char *root;

static const char *in_root(int which, const char *name)
{
    snprintf(path[which], sizeof path[which], "%s/%s", root, name);
    return path[which];
}

static const char *outcome(int result)
{
    return result < 0 ? strerror(errno) : "ok";
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list(const char *name)
{
    char *names[64];
    size_t n = 0;
    DIR *dir = opendir(in_root(0, name));
    if (!dir) {
        printf("list %s: %s\n", name, strerror(errno));
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) && n < 64;) {
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) {
            names[n++] = strdup(entry->d_name);
        }
    }
    closedir(dir);
    qsort(names, n, sizeof *names, by_name);
    printf("list %s:", name);
    for (size_t i = 0; i < n; i++) {
        struct stat s;
        char inner[300];
        snprintf(inner, sizeof inner, "%s/%s", name, names[i]);
        int result = lstat(in_root(0, inner), &s);
        const char *kind = result < 0 ? "?" : S_ISDIR(s.st_mode) ? "/" : S_ISLNK(s.st_mode) ? "@" : "";
        printf(" %s%s", names[i], kind);
        if (S_ISREG(s.st_mode)) {
            printf("(%lld)", (long long)s.st_size);
        }
        free(names[i]);
    }
    putchar('\n');
}

static void show(const char *name)
{
    char buffer[64];
    FILE *f = fopen(in_root(0, name), "r");
    if (!f) {
        printf("show %s: %s\n", name, strerror(errno));
        return;
    }
    printf("show %s: ", name);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;) {
        for (size_t i = 0; i < n; i++) {
            if (buffer[i] == '\n') {
                fputs("\\n", stdout);
            } else if (buffer[i]) {
                putchar(buffer[i]);
            } else {
                putchar('.');
            }
        }
    }
    fclose(f);
    putchar('\n');
}

static void write_text(const char *name, const char *mode, const char *text)
{
    FILE *f = fopen(in_root(0, name), mode);
    if (!f) {
        printf("write %s: %s\n", name, strerror(errno));
        return;
    }
    fputs(text, f);
    printf("write %s: %s\n", name, outcome(fclose(f)));
}

int main(int argc, char **argv)
{
    root = argc > 1 ? argv[1] : ".";
    printf("make a directory: %s\n", outcome(mkdir(in_root(0, "d"), 0777)));
    printf("and once more: %s\n", outcome(mkdir(in_root(0, "d"), 0777)));
    write_text("d/a.txt", "w", "one\ntwo\n");
    write_text("d/a.txt", "a", "three\n");
    write_text("d/b.txt", "wx", "new\n");
    write_text("d/b.txt", "wx", "not new\n");
    write_text("none/b.txt", "w", "nowhere\n");
    show("d/a.txt");

    FILE *f = fopen(in_root(0, "d/a.txt"), "r+");
    if (!f) {
        return 1;
    }
    fseek(f, 4, SEEK_SET);
    fputs("TWO", f);
    fseek(f, -6, SEEK_END);
    char word[8] = {0};
    fgets(word, 6, f);
    printf("at the end: %s, at %ld\n", word, ftell(f));
    rewind(f);
    int c = getc(f);
    ungetc('O', f);
    int again = getc(f);
    printf("put back: %c, then %c\n", c, again);
    fclose(f);
    show("d/a.txt");

    printf("shorter: %s\n", outcome(truncate(in_root(0, "d/a.txt"), 5)));
    printf("longer: %s\n", outcome(truncate(in_root(0, "d/a.txt"), 9)));
    show("d/a.txt");
    int fd = open(in_root(0, "d/b.txt"), O_RDWR);
    ssize_t written = pwrite(fd, "NEW", 3, 10), got = pread(fd, word, 3, 10);
    printf("at a place: %zd %zd\n", written, got);
    printf("read: %.3s, position %lld\n", word, (long long)lseek(fd, 0, SEEK_CUR));
    printf("synced: %s\n", outcome(fsync(fd)));
    close(fd);
    fd = open(in_root(0, "d/b.txt"), O_RDONLY);
    printf("write to what is read: %s\n", outcome((int)write(fd, "x", 1)));
    close(fd);
    printf("close again: %s\n", outcome(close(fd)));
    printf("open a directory to write: %s\n", outcome(open(in_root(0, "d"), O_WRONLY)));

    printf("symlink: %s\n", outcome(symlink("a.txt", in_root(0, "d/link"))));
    show("d/link");
    char target[64];
    ssize_t len = readlink(in_root(0, "d/link"), target, sizeof target);
    printf("it leads to: %.*s\n", (int)len, target);
    printf("link: %s\n", outcome(link(in_root(0, "d/b.txt"), in_root(1, "d/same"))));
    struct stat s;
    printf("stat: %s", outcome(stat(in_root(0, "d/same"), &s)));
    printf(", %d links, %lld bytes\n", (int)s.st_nlink, (long long)s.st_size);
    list("d");
    printf("rename: %s\n", outcome(rename(in_root(0, "d/same"), in_root(1, "moved"))));
    printf("rename what is not there: %s\n", outcome(rename(in_root(0, "d/same"), in_root(1, "m"))));
    list(".");

    printf("outside: %s\n", access(in_root(0, "../../../../../../../etc/hostname"), R_OK) ? "cannot be reached" : "open");
    FILE *absolute = fopen("/etc/hostname", "r");
    printf("absolute: %s\n", absolute ? "open" : "cannot be reached");
    int has_link = symlink("../../../../../../../etc", in_root(0, "d/out")) == 0;
    f = fopen(in_root(0, "d/out/hostname"), "r");
    printf("by a link: %s\n", f ? "open" : "cannot be reached");
    if (has_link) {
        unlink(in_root(0, "d/out"));
    }

    printf("remove a directory with files: %s\n", outcome(rmdir(in_root(0, "d"))));
    static const char *const names[] = {"d/a.txt", "d/b.txt", "d/link", "moved"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        printf("remove %s: %s\n", names[i], outcome(unlink(in_root(0, names[i]))));
    }
    printf("remove it: %s\n", outcome(rmdir(in_root(0, "d"))));
    list("d");
    list(".");
    return 0;
}
