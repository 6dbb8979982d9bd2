import type { Like } from "../shape";
import type en from "../en/overview";

const zh: Like<typeof en> = { title: "" };
export default zh;
