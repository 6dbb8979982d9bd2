/**
 * What a node answers, without the streams of a real body: those need turns of the event loop that a test with a clock of its own does not give, so
 * that on a busy machine the answer would come after the test has looked.
 */
export function answered(body: object, status = 200): Response {
  const text = JSON.stringify(body);
  const answer = new Response(text, { status, headers: { "content-type": "application/json" } });
  return Object.assign(answer, { text: () => Promise.resolve(text), json: () => Promise.resolve(JSON.parse(text) as unknown) });
}
