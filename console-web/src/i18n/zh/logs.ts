import type { Like } from "../shape";
import type en from "../en/logs";

const zh: Like<typeof en> = { title: "" };
export default zh;
