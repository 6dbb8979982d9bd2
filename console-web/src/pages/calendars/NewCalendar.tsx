/** A calendar that is not there yet. */
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import { WEEKENDS_OFF } from "../../lib/calendar";
import { useLink } from "../../lib/tenant";
import { Page } from "../../parts/Page";
import { CalendarEditor } from "./CalendarEditor";

export function NewCalendar({ tenant }: { tenant: string }) {
  const { t: own } = useTranslation("calendars");
  const link = useLink();
  const navigate = useNavigate();
  return (
    <Page title={own("editor.new_title")} subtitle={<Link to={link("/calendars")}>{own("calendars.all")}</Link>}>
      <CalendarEditor tenant={tenant} base={WEEKENDS_OFF} version={0} onSaved={(name) => void navigate(link("/calendars", { calendar: name }), { replace: true })} />
    </Page>
  );
}
