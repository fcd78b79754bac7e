// Helpers for elements of the page.

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// Append a row with a title to a table.
export function addRow(body, title) {
  const row = body.insertRow();
  row.append(element("th", { scope: "row" }, title));
  return row;
}
