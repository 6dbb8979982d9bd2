/** What a permission or a role allows, in the viewer's language. The node says it in English. */
import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import type { Schema } from "../api/client";
import { PERMISSIONS_ZH, ROLES_ZH } from "../i18n/zh/permissions";

type Described = Schema<"Permission">;

/** The permission with the description to show; one of a newer node has the node's own words. */
export function useDescribed(): (permission: Described) => Described {
  const { i18n } = useTranslation();
  const isChinese = i18n.language === "zh";
  return useCallback(
    (permission) => {
      const words = isChinese ? PERMISSIONS_ZH.get(permission.name) : undefined;
      return words === undefined ? permission : { ...permission, description: words };
    },
    [isChinese],
  );
}

/** The description of a role: of a built-in one in the viewer's language, else what its maker wrote. */
export function useRoleDescription(): (role: Pick<Schema<"Role">, "name" | "description" | "built_in">) => string {
  const { i18n } = useTranslation();
  const isChinese = i18n.language === "zh";
  return useCallback(
    ({ name, description, built_in }) => {
      const words = isChinese && built_in ? ROLES_ZH.get(name) : undefined;
      return words ?? description;
    },
    [isChinese],
  );
}
