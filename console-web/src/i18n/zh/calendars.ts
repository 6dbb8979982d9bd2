import type { Like } from "../shape";
import type en from "../en/calendars";

const zh: Like<typeof en> = { title: "" };
export default zh;
