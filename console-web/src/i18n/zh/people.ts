import type { Like } from "../shape";
import type en from "../en/people";

const zh: Like<typeof en> = {
  sign_in: {
    title: "登录",
    name: "用户名",
    password: "密码",
    submit: "登录",
    single: "使用 {{name}} 登录",
    or: "或",
    first: "新安装的系统：用户名为 admin，密码在节点首次启动时打印。",
    wrong: "用户名或密码错误。",
    throttled: "尝试次数过多，请在 {{seconds}} 秒后重试。",
    disabled_hint: "若确认两者无误，可请用户管理员重置密码。",
    single_failed: {
      state: "登录用时过长，或是在另一个窗口中开始的，请重新登录。",
      expired: "登录用时过长，请重新登录。",
      provider: "登录服务未正常响应。请重试；若问题依旧，节点日志中有原因。",
      not_allowed: "登录服务认识您，但您无权使用 carillon。请联系用户管理员。",
      refused: "登录服务拒绝了登录，或您中断了登录。请重试。",
      too_many: "登录请求过多，请等待一分钟后重试。",
      unavailable: "节点未能完成登录。请重试；若问题依旧，节点日志中有原因。",
      other: "登录未成功。请重试；若问题依旧，节点日志中有原因。",
    },
  },
  new_password: {
    title: "设置新密码",
    why: "您登录所用的密码由他人提供，请设置只有您知道的密码。",
    current: "当前密码",
    next: "新密码",
    again: "再次输入新密码",
    different: "两次输入不一致。",
    rule: "至少 12 个字符，不能是用户名，也不能是常见密码。",
    submit: "修改密码",
    done: "密码已修改",
  },
};
export default zh;
