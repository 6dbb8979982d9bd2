import type { Like } from "../shape";
import type en from "../en/schedule";

const zh: Like<typeof en> = {
  in_words: {
    by_hand: "仅手动",
    after_one: "在另一任务之后",
    after_other: "在 {{count}} 个任务之后",
    and_after_one: "以及在另一任务之后",
    and_after_other: "以及在 {{count}} 个任务之后",
    rate: "每 {{span}}",
    delay: "上次运行结束后 {{span}}",
    once: "一次，于",
  },
};
export default zh;
