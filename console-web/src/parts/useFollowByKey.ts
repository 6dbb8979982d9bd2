/** Links in menus, by keyboard: the menu tells its entry of the key, not the link in it. */
import type { MenuProps } from "antd";
import { useNavigate } from "react-router";

/** What a menu tells about the entry that was chosen. */
export type MenuInfo = Parameters<NonNullable<MenuProps["onClick"]>>[0];

/** For the `onClick` of an entry whose label is a link to `path`. */
export function useFollowByKey(): (path: string) => (info: MenuInfo) => void {
  const navigate = useNavigate();
  return (path) => ({ domEvent }) => {
    if (domEvent.type === "keydown") void navigate(path);
  };
}
