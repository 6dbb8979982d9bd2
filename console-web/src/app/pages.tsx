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
  ImportOutlined,
  KeyOutlined,
  PauseCircleOutlined,
  PieChartOutlined,
  ProfileOutlined,
  SafetyCertificateOutlined,
  SettingOutlined,
  TeamOutlined,
} from "@ant-design/icons";
import type { ComponentType, ReactNode } from "react";
import type { Permission } from "../api/permissions";

/** Key of a page's name in the texts. */
export type PageName =
  | "overview" | "tasks" | "logs" | "executors" | "apps" | "nodes" | "calendars" | "maintenance" | "statistics"
  | "imports" | "tenants" | "quotas" | "users" | "roles" | "tokens" | "audit" | "settings" | "account";

/** A part of the menu. */
export type Group = "group_runs" | "group_engine" | "group_people";

export interface PageRoute {
  path: string;
  name: PageName;
  /** Without it the page is not in the menu, and its address shows "no such page"; absent: everybody's. */
  needs?: Permission;
  /** Where it stands in the menu; absent: not there. */
  menu?: { group: Group; icon: ReactNode };
  /** Its code. */
  load: () => Promise<{ default: ComponentType }>;
}

export const PAGES: readonly PageRoute[] = [
  { path: "/", name: "overview", needs: "statistics.read", menu: { group: "group_runs", icon: <DashboardOutlined aria-hidden /> }, load: () => import("../pages/overview/Overview") },
  { path: "/tasks", name: "tasks", needs: "tasks.read", menu: { group: "group_runs", icon: <FieldTimeOutlined aria-hidden /> }, load: () => import("../pages/tasks/Tasks") },
  { path: "/tasks/new", name: "tasks", needs: "tasks.create", load: () => import("../pages/tasks/TaskEditor") },
  { path: "/tasks/:id", name: "tasks", needs: "tasks.read", load: () => import("../pages/task/TaskDetail") },
  { path: "/tasks/:id/edit", name: "tasks", needs: "tasks.edit", load: () => import("../pages/tasks/TaskEditor") },
  { path: "/logs", name: "logs", needs: "task_logs.read", menu: { group: "group_runs", icon: <ProfileOutlined aria-hidden /> }, load: () => import("../pages/logs/Logs") },
  { path: "/logs/:id", name: "logs", needs: "task_logs.read", load: () => import("../pages/logs/LogDetail") },
  { path: "/calendars", name: "calendars", needs: "calendars.read", menu: { group: "group_runs", icon: <CalendarOutlined aria-hidden /> }, load: () => import("../pages/calendars/Calendars") },
  { path: "/maintenance", name: "maintenance", needs: "maintenance.read", menu: { group: "group_runs", icon: <PauseCircleOutlined aria-hidden /> }, load: () => import("../pages/maintenance/Maintenance") },
  { path: "/statistics", name: "statistics", needs: "statistics.read", menu: { group: "group_runs", icon: <BarChartOutlined aria-hidden /> }, load: () => import("../pages/statistics/Statistics") },
  { path: "/executors", name: "executors", needs: "executors.read", menu: { group: "group_engine", icon: <DeploymentUnitOutlined aria-hidden /> }, load: () => import("../pages/executors/Executors") },
  { path: "/apps", name: "apps", needs: "apps.read", menu: { group: "group_engine", icon: <ApiOutlined aria-hidden /> }, load: () => import("../pages/apps/Apps") },
  { path: "/apps/:id", name: "apps", needs: "apps.read", load: () => import("../pages/apps/AppDetail") },
  { path: "/imports", name: "imports", needs: "tasks.read", menu: { group: "group_engine", icon: <ImportOutlined aria-hidden /> }, load: () => import("../pages/imports/Imports") },
  { path: "/nodes", name: "nodes", needs: "nodes.read", menu: { group: "group_engine", icon: <ClusterOutlined aria-hidden /> }, load: () => import("../pages/nodes/Nodes") },
  { path: "/settings", name: "settings", needs: "settings.read", menu: { group: "group_engine", icon: <SettingOutlined aria-hidden /> }, load: () => import("../pages/settings/Settings") },
  { path: "/tenants", name: "tenants", needs: "tenants.read", menu: { group: "group_people", icon: <ApartmentOutlined aria-hidden /> }, load: () => import("../pages/tenants/Tenants") },
  { path: "/quotas", name: "quotas", needs: "quotas.read", menu: { group: "group_people", icon: <PieChartOutlined aria-hidden /> }, load: () => import("../pages/quotas/Quotas") },
  { path: "/users", name: "users", needs: "users.read", menu: { group: "group_people", icon: <TeamOutlined aria-hidden /> }, load: () => import("../pages/users/Users") },
  { path: "/users/:id", name: "users", needs: "users.read", load: () => import("../pages/users/UserDetail") },
  { path: "/roles", name: "roles", needs: "roles.read", menu: { group: "group_people", icon: <SafetyCertificateOutlined aria-hidden /> }, load: () => import("../pages/roles/Roles") },
  { path: "/tokens", name: "tokens", needs: "tokens.read", menu: { group: "group_people", icon: <KeyOutlined aria-hidden /> }, load: () => import("../pages/tokens/Tokens") },
  { path: "/audit", name: "audit", needs: "audit.read", menu: { group: "group_people", icon: <AuditOutlined aria-hidden /> }, load: () => import("../pages/audit/Audit") },
  { path: "/account", name: "account", load: () => import("../pages/account/Account") },
];
