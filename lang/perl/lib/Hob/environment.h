/* %ENV from request to request, for Native.xs.
 *
 * Each assignment changes the environment of the process too, and one request has much in common with
 * the one before it. So what %ENV was left with is remembered: if it still is that, only values that
 * differ between the two requests are set.
 */

#define ENTRY_COUNT_MAX 256
#define VARIABLE_COUNT_MAX 128

typedef struct {
    HE *place;
    char *name, *value;
    STRLEN name_bytes, value_bytes, room;
} entry;

static struct {
    HV *hash;
    AV *instead;      /* names and values in place of the request's */
    int entry_count;  /* of 0 nothing is known */
    entry entries[ENTRY_COUNT_MAX];
    char *block; /* the last request's variables, and at which byte each begins */
    STRLEN length, room;
    int variable_count;
    U32 starts[VARIABLE_COUNT_MAX + 1];
} left;

static void keep_value(pTHX_ entry *one, const char *value, STRLEN bytes) {
    if (bytes + 1 > one->room) {
        one->room = bytes + 1;
        Renew(one->value, one->room, char);
    }
    Copy(value, one->value, bytes, char);
    one->value_bytes = bytes;
}

/* Whether a value in %ENV is what it was set to. */
static int is_value(SV *sv, const char *value, STRLEN bytes) {
    return SvPOK(sv) && !SvUTF8(sv) && SvCUR(sv) == bytes && memEQ(SvPVX(sv), value, bytes);
}

/* Whether nobody has changed %ENV. */
static int is_as_left(HV *hash) {
    entry *one = left.entries, *stop = left.entries + left.entry_count;
    HE **buckets = HvARRAY(hash);
    STRLEN at;
    if (hash != left.hash || !left.entry_count || HvTOTALKEYS(hash) != (STRLEN)left.entry_count) return 0;
    for (at = 0; at <= HvMAX(hash); at++) {
        HE *place = buckets[at];
        for (; place; place = HeNEXT(place), one++)
            if (one == stop || place != one->place || HeKLEN(place) != (I32)one->name_bytes
                || memNE(HeKEY(place), one->name, one->name_bytes)
                || !is_value(HeVAL(place), one->value, one->value_bytes))
                return 0;
    }
    return one == stop;
}

/* Remembers %ENV as it is now, which is as this request wants it. */
static void remember_environment(pTHX_ HV *hash, const variables *all, AV *instead) {
    variables each = *all;
    HE **buckets = HvARRAY(hash);
    STRLEN at, length = all->stop - all->at;
    int count = 0;
    left.entry_count = left.variable_count = 0;
    if (!buckets || HvTOTALKEYS(hash) > ENTRY_COUNT_MAX) return;
    while (each.at < each.stop) {
        if (left.variable_count == VARIABLE_COUNT_MAX) return;
        left.starts[left.variable_count++] = each.at - all->at;
        next_variable(&each);
    }
    for (at = 0; at <= HvMAX(hash); at++) {
        HE *place = buckets[at];
        for (; place; place = HeNEXT(place)) {
            entry *one = &left.entries[count++];
            STRLEN bytes;
            const char *value = SvPV_nomg(HeVAL(place), bytes);
            one->place = place;
            one->name_bytes = HeKLEN(place);
            Renew(one->name, one->name_bytes + 1, char);
            Copy(HeKEY(place), one->name, one->name_bytes, char);
            keep_value(aTHX_ one, value, bytes);
        }
    }
    if (length > left.room) Renew(left.block, left.room = length, char);
    Copy(all->at, left.block, length, char);
    left.length = length;
    left.hash = hash;
    if (left.instead != instead) {
        SvREFCNT_dec((SV *)left.instead);
        left.instead = (AV *)SvREFCNT_inc((SV *)instead);
    }
    left.entry_count = count;
}

/* Sets a value that is in %ENV; false when it is not. */
static int set_entry(pTHX_ const char *name, STRLEN name_bytes, const char *value, STRLEN value_bytes) {
    entry *one = left.entries, *stop = left.entries + left.entry_count;
    for (; one < stop; one++) {
        if (one->name_bytes != name_bytes || memNE(one->name, name, name_bytes)) continue;
        if (one->value_bytes != value_bytes || memNE(one->value, value, value_bytes)) {
            sv_setpvn_mg(HeVAL(one->place), value, value_bytes);
            keep_value(aTHX_ one, value, value_bytes);
        }
        return 1;
    }
    return 0;
}

static int is_named_in(pTHX_ AV *pairs, const char *name, STRLEN name_bytes) {
    SSize_t at = 0, end = av_len(pairs);
    for (; at < end; at += 2) {
        STRLEN bytes;
        const char *found = SvPV(*av_fetch(pairs, at, 0), bytes);
        if (bytes == name_bytes && memEQ(found, name, bytes)) return 1;
    }
    return 0;
}

/* What is set in place of the request's: false when other names than before. */
static int set_instead(pTHX_ AV *instead) {
    SSize_t at, end = av_len(instead);
    if (instead == left.instead) return 1;
    if (end < 0 || end != av_len(left.instead)) return end == av_len(left.instead);
    for (at = 0; at < end; at += 2) {
        STRLEN name_bytes, value_bytes;
        const char *name = SvPV(*av_fetch(instead, at, 0), name_bytes);
        const char *value = SvPV(*av_fetch(instead, at + 1, 0), value_bytes);
        if (!is_named_in(aTHX_ left.instead, name, name_bytes)
            || !set_entry(aTHX_ name, name_bytes, value, value_bytes))
            return 0;
    }
    SvREFCNT_dec((SV *)left.instead);
    left.instead = (AV *)SvREFCNT_inc((SV *)instead);
    return 1;
}

/* How many bytes both begin with, at most so many. */
static STRLEN common_start(const char *one, const char *other, STRLEN most) {
    STRLEN at = 0;
    U64 left_bytes, right_bytes;
    for (; at + sizeof left_bytes <= most; at += sizeof left_bytes) {
        memcpy(&left_bytes, one + at, sizeof left_bytes);
        memcpy(&right_bytes, other + at, sizeof right_bytes);
        if (left_bytes != right_bytes) break;
    }
    while (at < most && one[at] == other[at]) at++;
    return at;
}

/* How many bytes both end with; the pointers are behind them. */
static STRLEN common_end(const char *one, const char *other, STRLEN most) {
    STRLEN count = 0;
    while (count < most && one[-1 - (SSize_t)count] == other[-1 - (SSize_t)count]) count++;
    return count;
}

/* Sets what differs from the last request; false when that cannot be, and nothing is known then. */
static int set_difference(pTHX_ const variables *given, AV *instead) {
    variables all = *given, old = {0};
    const char *begin = all.at, *old_stop = left.block + left.length;
    STRLEN length = all.stop - all.at, most = length < left.length ? length : left.length, start, end;
    int at = 0;
    if (length > left.room || !set_instead(aTHX_ instead)) return 0;
    start = common_start(begin, left.block, most);
    if (start == length && start == left.length) return 1;
    end = common_end(all.stop, old_stop, most - start);
    while (at + 1 < left.variable_count && left.starts[at + 1] <= start) at++;
    old.at = left.block + left.starts[at];
    old.stop = old_stop;
    all.at += left.starts[at];
    /* Until as many bytes follow in both, all of them the same. */
    for (; (STRLEN)(all.stop - all.at) > end || all.stop - all.at != old_stop - old.at; at++) {
        left.starts[at] = all.at - begin;
        if (!next_variable(&all) || !next_variable(&old) || all.name_bytes != old.name_bytes
            || memNE(all.name, old.name, all.name_bytes))
            return 0;
        if (!is_named_in(aTHX_ instead, all.name, all.name_bytes)
            && !set_entry(aTHX_ all.name, all.name_bytes, all.value, all.value_bytes))
            return 0;
    }
    for (; length != left.length && at < left.variable_count; at++) left.starts[at] += length - left.length;
    Copy(begin + start, left.block + start, length - start, char);
    left.length = length;
    return 1;
}

/* Sets %ENV to what a request wants if it was as the last one wanted it; false when it was not. */
static int set_if_as_left(pTHX_ HV *hash, const variables *all, AV *instead) {
    if (is_as_left(hash) && set_difference(aTHX_ all, instead)) return 1;
    left.entry_count = 0;
    return 0;
}
