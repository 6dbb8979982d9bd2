import type { Like } from "../shape";
import type en from "../en/nodes";

const zh: Like<typeof en> = { title: "" };
export default zh;
