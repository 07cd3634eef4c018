//! The nearest valid word to one that is not: what a misspelt key or word was probably meant to be.

/// The word of `valid` that `given` was probably meant to be, if one is near enough.
pub fn nearest<'w>(given: &str, valid: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let given: Vec<char> = given
        .chars()
        .take(LENGTH_MAX + 1)
        .flat_map(char::to_lowercase)
        .collect();
    if given.is_empty() || given.len() > LENGTH_MAX {
        return None;
    }
    valid
        .into_iter()
        .map(|word| (distance(&given, &word.chars().collect::<Vec<_>>()), word))
        .filter(|(distance, word)| *distance <= allowed(given.len().min(word.chars().count())))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Longer words are not compared: the work grows with the square.
const LENGTH_MAX: usize = 64;

/// How many slips a word of this length may have and still be recognised.
fn allowed(len: usize) -> usize {
    match len {
        0..=4 => 1,
        5..=8 => 2,
        _ => 3,
    }
}

/// Edit distance in which swapping two neighbours is one slip.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let differ = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + differ);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = last;
        last = row;
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let valid = ["backlog", "address", "log", "v6only"];
        assert_eq!(nearest("backlok", valid), Some("backlog"));
        assert_eq!(nearest("adress", valid), Some("address"));
        assert_eq!(nearest("lgo", valid), Some("log"));
        assert_eq!(nearest("V6Only", valid), Some("v6only"));
        assert_eq!(nearest("certificate", valid), None);
        assert_eq!(nearest("", valid), None);
        assert_eq!(nearest(&"x".repeat(10_000), valid), None);
    }
}
