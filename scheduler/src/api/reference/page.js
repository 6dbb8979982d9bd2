"use strict";
// Makes the page of the OpenAPI document. All text goes in as text, never as HTML.

/** Schemas within schemas are shown down to this depth; they may name themselves. */
const DEPTH_MAX = 6;

const METHODS = ["get", "post", "put", "delete"];

/** An element with a class and children: elements or texts. */
function make(name, kind, ...children) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** A text whose words in backquotes are code. */
function prose(text) {
  return (text || "").split("`").map((part, at) => (at % 2 ? make("code", "", part) : part));
}

/** What a `$ref` points to (nothing, when that is not there), or the thing itself. */
function resolve(api, thing) {
  if (!thing || !thing.$ref) return thing || {};
  return thing.$ref.slice(2).split("/").reduce((at, part) => at && at[part], api) || {};
}

/** Whether it is one of a few words. */
function isChoice(schema) {
  return Boolean(schema.enum) || (schema.oneOf || []).some((one) => one.enum || one.const !== undefined);
}

/** The name of a type, in a few words: `array of Task`, `integer or null`, `1 to 500`. */
function words(api, schema) {
  if (!schema) return "";
  if (schema.$ref) return isChoice(resolve(api, schema)) ? words(api, resolve(api, schema)) : schema.$ref.split("/").pop();
  const any = schema.oneOf || schema.anyOf;
  if (any) return any.map((one) => words(api, one)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  const types = [].concat(schema.type || "any");
  const text = types.map((type) => (type === "array" ? `array of ${words(api, schema.items)}` : type)).join(" or ");
  return text + bounds(schema);
}

function bounds(schema) {
  const parts = [];
  const range = (least, most, unit) => {
    if (least !== undefined && most !== undefined) parts.push(`${least} to ${most}${unit}`);
    else if (most !== undefined) parts.push(`at most ${most}${unit}`);
    else if (least !== undefined) parts.push(`at least ${least}${unit}`);
  };
  range(schema.minimum, schema.maximum, "");
  range(schema.minLength, schema.maxLength, " characters");
  range(schema.minItems, schema.maxItems, " items");
  return parts.length ? `, ${parts.join(", ")}` : "";
}

/** The schema with fields that lies in this one, if there is one. */
function inner(api, schema) {
  const whole = resolve(api, schema);
  if (whole.properties) return whole;
  if (whole.items) return inner(api, whole.items);
  for (const part of whole.oneOf || whole.anyOf || []) {
    const found = inner(api, part);
    if (found) return found;
  }
  return null;
}

/** The fields of a schema; those of schemas within are made when they are opened. */
function fields(api, schema, depth) {
  const object = inner(api, schema);
  const list = make("ul", "fields");
  for (const [name, field] of Object.entries((object && object.properties) || {})) {
    const isRequired = (object.required || []).includes(name);
    const line = [
      make("code", "", name), " ", make("span", "soft", words(api, field)),
      isRequired ? make("span", "required", " required") : "",
      " ", ...prose(field.description),
    ];
    const item = make("li");
    if (depth < DEPTH_MAX && inner(api, field)) {
      const more = make("details", "", make("summary", "", ...line));
      more.addEventListener("toggle", () => more.append(fields(api, field, depth + 1)), { once: true });
      item.append(more);
    } else {
      item.append(...line);
    }
    list.append(item);
  }
  return list;
}

/** Content of a body or an answer. */
function content(api, holder) {
  return Object.entries(holder.content || {}).map(([kind, { schema }]) => {
    const part = make("div", "", make("span", "soft", `${kind}: `), make("code", "", words(api, schema)));
    if (inner(api, schema)) part.append(fields(api, schema, 0));
    return part;
  });
}

function parameters(api, operation) {
  if (!operation.parameters) return [];
  const rows = operation.parameters.map((parameter) =>
    make("tr", "",
      make("td", "", make("code", "", parameter.name), parameter.required ? make("span", "required", " required") : ""),
      make("td", "soft", parameter.in), make("td", "soft", words(api, parameter.schema)),
      make("td", "", ...prose(parameter.description))));
  const head = make("tr", "", ...["parameter", "in", "type", ""].map((text) => make("th", "", text)));
  return [make("h3", "", "Parameters"), make("table", "", head, ...rows)];
}

function answers(api, operation) {
  const rows = Object.entries(operation.responses).map(([status, answer]) => {
    const whole = resolve(api, answer);
    const isRefusal = Number(status) >= 400;
    return make("tr", "", make("td", "", make("code", "", status)),
      make("td", "", ...prose(whole.description), ...(isRefusal ? [] : content(api, whole))));
  });
  return [make("h3", "", "Answers"), make("table", "", ...rows)];
}

/** One operation; what is below its line is made when it is opened. */
function section(api, path, method, operation) {
  const needs = operation["x-permission"];
  const whole = make("details", "operation",
    make("summary", "", make("span", "method", method.toUpperCase()), make("span", "path", path),
      make("span", "", operation.summary), make("code", "needs soft", needs)));
  whole.id = operation.operationId;
  whole.dataset.text = JSON.stringify([method, path, operation, needs]).toLowerCase();
  whole.addEventListener("toggle", () => {
    const free = {
      public: "Needs no login.",
      signed_in: "Needs a login, and no permission.",
      session: "Needs a session, and no permission.",
    };
    const body = operation.requestBody;
    whole.append(make("div", "",
      make("p", "", make("code", "", operation.operationId), ". ", free[needs] || "Needs the permission ",
        free[needs] ? "" : make("code", "", needs), free[needs] ? "" : ".",
        " ", ...prose(operation.description)),
      ...parameters(api, operation),
      ...(body ? [make("h3", "", "Body"), ...content(api, resolve(api, body))] : []),
      ...answers(api, operation)));
  }, { once: true });
  return whole;
}

/** Hides what has not every word of the search. */
function search(text) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const group of document.querySelectorAll("main > section")) {
    let shown = 0;
    for (const operation of group.querySelectorAll("details.operation")) {
      operation.hidden = !wanted.every((word) => operation.dataset.text.includes(word));
      shown += operation.hidden ? 0 : 1;
    }
    group.hidden = shown === 0;
    count += shown;
  }
  document.getElementById("count").textContent = `${count} operations`;
}

function show(api) {
  document.getElementById("version").textContent = api.info.version;
  document.getElementById("about").replaceChildren(...prose(api.info.description));
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((method) => methods[method])) {
      const tag = methods[method].tags[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(section(api, path, method, methods[method]));
    }
  }
  for (const [tag, operations] of groups) {
    const link = make("a", "", tag);
    link.href = `#tag-${tag}`;
    document.getElementById("tags").append(link, " ");
    const group = make("section", "", make("h2", "", tag), ...operations);
    group.id = `tag-${tag}`;
    document.getElementById("operations").append(group);
  }
  const field = document.getElementById("search");
  field.addEventListener("input", () => search(field.value));
  search("");
  const named = document.getElementById(location.hash.slice(1));
  if (named) { named.open = true; named.scrollIntoView(); }
}

fetch("openapi.json")
  .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(`status ${answer.status}`))))
  .then(show)
  .catch((error) => document.getElementById("operations").append(`The document cannot be read: ${error.message}`));
