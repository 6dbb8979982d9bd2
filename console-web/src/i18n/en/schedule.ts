export default {
  in_words: {
    by_hand: "by hand only",
    after_one: "after another task",
    after_other: "after {{count}} tasks",
    and_after_one: "and after another task",
    and_after_other: "and after {{count}} tasks",
    rate: "every {{span}}",
    delay: "{{span}} after its last run",
    once: "once at",
  },
} as const;
