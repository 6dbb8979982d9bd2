import type { Like } from "../shape";
import type en from "../en/statistics";

const zh: Like<typeof en> = { title: "" };
export default zh;
