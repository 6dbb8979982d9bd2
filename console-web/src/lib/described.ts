/** What a permission allows, in the viewer's language. The node says it in English. */
import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import type { Schema } from "../api/client";
import { PERMISSIONS_ZH } from "../i18n/zh/permissions";

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
