/** The button that ends a window, or takes back a planned one. */
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { windowState } from "../../lib/maintenance";
import { useNow } from "../../lib/now";
import { Confirm } from "../../parts/Confirm";
import { useAction } from "../../parts/useAction";

export function EndWindow({ tenant, window }: { tenant: string; window: Schema<"MaintenanceWindow"> }) {
  const { t: own } = useTranslation("calendars");
  const { mayWhole } = useSession();
  const { run } = useAction();
  const state = windowState(window, useNow(1_000));
  if (state === "over" || !mayWhole("maintenance.delete", tenant)) return null;
  const isPlanned = state === "planned";
  const end = () => run(() => client.DELETE("/tenants/{tenant}/maintenance/{id}", { params: { path: { tenant, id: window.id } } }), { done: own("maintenance.ended") });
  return (
    <Confirm
      label={own(isPlanned ? "maintenance.drop" : "maintenance.end")}
      question={own(isPlanned ? "maintenance.drop_question" : "maintenance.end_question")}
      consequence={isPlanned ? own("maintenance.drop_consequence") : own(`maintenance.end_consequence.${window.action}`)}
      button={{ size: "small" }}
      onConfirm={end}
    />
  );
}
