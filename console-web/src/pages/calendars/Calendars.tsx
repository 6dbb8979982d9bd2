/** The calendars of a tenant; one of them, or a new one, in the editor. */
import { PlusOutlined } from "@ant-design/icons";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useSession } from "../../api/session";
import { useFilters } from "../../lib/search";
import { useLink, useTenant } from "../../lib/tenant";
import { Page } from "../../parts/Page";
import { TenantFirst } from "../../parts/TenantFirst";
import { CalendarList } from "./CalendarList";
import { NewCalendar } from "./NewCalendar";
import { OneCalendar } from "./OneCalendar";

export default function Calendars() {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const { mayWhole } = useSession();
  const { tenant } = useTenant();
  const link = useLink();
  // One page, and the calendar in the address: `?calendar=`, `?version=` for an earlier one, `?new=`.
  const { filters } = useFilters(["calendar", "version", "new"]);
  const { calendar } = filters;
  if (tenant !== undefined && calendar !== undefined) {
    return <OneCalendar key={`${tenant} ${calendar}`} tenant={tenant} name={calendar} version={filters.version} />;
  }
  const mayEdit = tenant !== undefined && mayWhole("calendars.edit", tenant);
  if (mayEdit && filters.new !== undefined) return <NewCalendar key={tenant} tenant={tenant} />;
  const create = mayEdit && (
    <Link to={link("/calendars", { new: "1" })} className="link-button">
      <PlusOutlined aria-hidden /> {own("calendars.create")}
    </Link>
  );
  return (
    <Page title={t("pages.calendars")} subtitle={own("calendars.subtitle")} actions={create}>
      <TenantFirst why={own("calendars.choose_tenant")} permission="calendars.read">
        {(chosen) => <CalendarList key={chosen} tenant={chosen} />}
      </TenantFirst>
    </Page>
  );
}
