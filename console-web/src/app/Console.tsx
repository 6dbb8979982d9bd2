/** The console of a user who is signed in: the frame, and the page of the address. */
import { Result } from "antd";
import { Waiting } from "../parts/Waiting";
import { lazy, Suspense, useState, type ComponentType } from "react";
import { useTranslation } from "react-i18next";
import { Link, matchPath, Route, Routes, useLocation } from "react-router";
import { client } from "../api/client";
import { LiveProvider } from "../lib/live";
import { useSession } from "../api/session";
import { useTenant } from "../lib/tenant";
import { Boundary } from "./Boundary";
import { Layout } from "./Layout";
import { PAGES } from "./pages";

/** A page that is loaded when it is opened. One whose script is there by then is shown at once, without a sign of waiting before it. */
function opened(load: () => Promise<{ default: ComponentType }>) {
  let here: ComponentType | undefined;
  const fetched = async () => {
    const page = await load();
    here = page.default;
    return page;
  };
  const Late = lazy(() =>
    fetched().catch(async (cause: unknown) => {
      // Where its script does not come, the node may be away: that is no fault of the page.
      await client.GET("/session");
      throw cause;
    }),
  );
  function Page() {
    const [Shown] = useState(() => here ?? Late);
    return <Shown />;
  }
  return { Page, fetched };
}

const ROUTES = PAGES.map(({ path, needs, load }) => ({ path, needs, ...opened(load) }));

// The script of the page that the address names comes while the node is asked who this is. Should it fail, the page asks again.
void ROUTES.find(({ path }) => matchPath(path, window.location.pathname))?.fetched().catch(() => undefined);

function NoSuchPage() {
  const { t } = useTranslation();
  return <Result status="404" title={t("not_found_title")} subTitle={t("not_found_text")} extra={<Link to="/">{t("to_overview")}</Link>} />;
}

export function Console() {
  const { may } = useSession();
  const { tenant } = useTenant();
  const { pathname } = useLocation();
  return (
    <LiveProvider tenant={tenant}>
      <Layout>
        <Boundary about={pathname}>
          <Suspense fallback={<Waiting />}>
            <Routes>
              {/* Also those that one may not open: `/tasks/new` is no task of that name. */}
              {ROUTES.map(({ path, needs, Page }) => (
                <Route key={path} path={path} element={needs === undefined || may(needs) ? <Page /> : <NoSuchPage />} />
              ))}
              <Route path="*" element={<NoSuchPage />} />
            </Routes>
          </Suspense>
        </Boundary>
      </Layout>
    </LiveProvider>
  );
}
