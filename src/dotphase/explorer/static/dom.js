// Helpers for elements of the page.

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// Text with subscripts: "α_c" becomes α with an index.
export function indexed(text) {
  return text.split(/([αε]_[a-z])/).flatMap((part) => (/^[αε]_[a-z]$/.test(part) ? [part[0], element("sub", {}, part[2])] : [part]));
}

// The same for the figures.
export const indexedLabel = (text) => text.replace(/([αε])_([a-z])/g, "$1<sub>$2</sub>");

// Append a row with a title to a table.
export function addRow(body, title) {
  const row = body.insertRow();
  row.append(element("th", { scope: "row" }, ...(typeof title === "string" ? indexed(title) : [title])));
  return row;
}
