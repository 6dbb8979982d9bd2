import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createBrowserRouter } from "react-router";
import { RouterProvider } from "react-router/dom";
import { Problem } from "./api/client";
import { SessionGuard } from "./app/SessionGuard";
import { keepPolicy, nonce } from "./app/policy";
import { ThemeProvider } from "./app/theme";
import { startSpeaking } from "./i18n";
import "./styles.css";

/** Whether asking again can help: what the node refused for a reason it refuses again. */
function shouldRetry(failures: number, error: unknown): boolean {
  return !(error instanceof Problem && error.status < 500) && failures < 2;
}

const queries = new QueryClient({
  // What a page shows is renewed when the stream of events says so.
  defaultOptions: { queries: { retry: shouldRetry, staleTime: 10_000, gcTime: 120_000 } },
});

// One route for all: the pages are those of `Console`. This kind of router can ask before a page is left.
const router = createBrowserRouter([{ path: "*", element: <SessionGuard /> }]);

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no #root");
keepPolicy(document, nonce());
await startSpeaking();
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <ThemeProvider>
        <RouterProvider router={router} />
      </ThemeProvider>
    </QueryClientProvider>
  </StrictMode>,
);
