/** Every page: its address, who may see it, where it stands in the menu, and its code, loaded when it is opened. */
import {
  ApartmentOutlined,
  ApiOutlined,
  AuditOutlined,
  BarChartOutlined,
  CalendarOutlined,
  ClusterOutlined,
  DashboardOutlined,
  DeploymentUnitOutlined,
  FieldTimeOutlined,
  KeyOutlined,
  PauseCircleOutlined,
  PieChartOutlined,
  ProfileOutlined,
  SafetyCertificateOutlined,
  SettingOutlined,
  TeamOutlined,
} from "@ant-design/icons";
import { lazy, type ComponentType, type ReactNode } from "react";
import type { Permission } from "../api/permissions";

/** Key of a page's name in the texts. */
export type PageName =
  | "overview" | "tasks" | "logs" | "executors" | "apps" | "nodes" | "calendars" | "maintenance" | "statistics"
  | "tenants" | "quotas" | "users" | "roles" | "tokens" | "audit" | "settings" | "account";

/** A part of the menu. */
export type Group = "group_runs" | "group_engine" | "group_people";

export interface PageRoute {
  path: string;
  name: PageName;
  /** Without it the page is not in the menu, and its address shows "no such page"; absent: everybody's. */
  needs?: Permission;
  /** Where it stands in the menu; absent: not there. */
  menu?: { group: Group; icon: ReactNode };
  Page: ComponentType;
}

export const PAGES: readonly PageRoute[] = [
  { path: "/", name: "overview", needs: "statistics.read", menu: { group: "group_runs", icon: <DashboardOutlined /> }, Page: lazy(() => import("../pages/overview/Overview")) },
  { path: "/tasks", name: "tasks", needs: "tasks.read", menu: { group: "group_runs", icon: <FieldTimeOutlined /> }, Page: lazy(() => import("../pages/tasks/Tasks")) },
  { path: "/tasks/new", name: "tasks", needs: "tasks.create", Page: lazy(() => import("../pages/tasks/TaskEditor")) },
  { path: "/tasks/:id", name: "tasks", needs: "tasks.read", Page: lazy(() => import("../pages/task/TaskDetail")) },
  { path: "/tasks/:id/edit", name: "tasks", needs: "tasks.edit", Page: lazy(() => import("../pages/tasks/TaskEditor")) },
  { path: "/logs", name: "logs", needs: "task_logs.read", menu: { group: "group_runs", icon: <ProfileOutlined /> }, Page: lazy(() => import("../pages/logs/Logs")) },
  { path: "/logs/:id", name: "logs", needs: "task_logs.read", Page: lazy(() => import("../pages/logs/LogDetail")) },
  { path: "/calendars", name: "calendars", needs: "calendars.read", menu: { group: "group_runs", icon: <CalendarOutlined /> }, Page: lazy(() => import("../pages/calendars/Calendars")) },
  { path: "/maintenance", name: "maintenance", needs: "maintenance.read", menu: { group: "group_runs", icon: <PauseCircleOutlined /> }, Page: lazy(() => import("../pages/maintenance/Maintenance")) },
  { path: "/statistics", name: "statistics", needs: "statistics.read", menu: { group: "group_runs", icon: <BarChartOutlined /> }, Page: lazy(() => import("../pages/statistics/Statistics")) },
  { path: "/executors", name: "executors", needs: "executors.read", menu: { group: "group_engine", icon: <DeploymentUnitOutlined /> }, Page: lazy(() => import("../pages/executors/Executors")) },
  { path: "/apps", name: "apps", needs: "apps.read", menu: { group: "group_engine", icon: <ApiOutlined /> }, Page: lazy(() => import("../pages/apps/Apps")) },
  { path: "/apps/:id", name: "apps", needs: "apps.read", Page: lazy(() => import("../pages/apps/AppDetail")) },
  { path: "/nodes", name: "nodes", needs: "nodes.read", menu: { group: "group_engine", icon: <ClusterOutlined /> }, Page: lazy(() => import("../pages/nodes/Nodes")) },
  { path: "/settings", name: "settings", needs: "settings.read", menu: { group: "group_engine", icon: <SettingOutlined /> }, Page: lazy(() => import("../pages/settings/Settings")) },
  { path: "/tenants", name: "tenants", needs: "tenants.read", menu: { group: "group_people", icon: <ApartmentOutlined /> }, Page: lazy(() => import("../pages/tenants/Tenants")) },
  { path: "/quotas", name: "quotas", needs: "quotas.read", menu: { group: "group_people", icon: <PieChartOutlined /> }, Page: lazy(() => import("../pages/quotas/Quotas")) },
  { path: "/users", name: "users", needs: "users.read", menu: { group: "group_people", icon: <TeamOutlined /> }, Page: lazy(() => import("../pages/users/Users")) },
  { path: "/users/:id", name: "users", needs: "users.read", Page: lazy(() => import("../pages/users/UserDetail")) },
  { path: "/roles", name: "roles", needs: "roles.read", menu: { group: "group_people", icon: <SafetyCertificateOutlined /> }, Page: lazy(() => import("../pages/roles/Roles")) },
  { path: "/tokens", name: "tokens", needs: "tokens.read", menu: { group: "group_people", icon: <KeyOutlined /> }, Page: lazy(() => import("../pages/tokens/Tokens")) },
  { path: "/audit", name: "audit", needs: "audit.read", menu: { group: "group_people", icon: <AuditOutlined /> }, Page: lazy(() => import("../pages/audit/Audit")) },
  { path: "/account", name: "account", Page: lazy(() => import("../pages/account/Account")) },
];
