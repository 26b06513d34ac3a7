// Formulas as trees, as Python's own reader makes them of text; and near names.
"use strict";

(($) => {
  const { raw } = $;
  class Node {}
  const node = (parent, ...parts) => {
    function Made(...given) { // called as Python calls a class, without new
      const one = new.target ? this : Object.create(Made.prototype);
      parts.forEach((name, at) => { one[name] = given[at]; });
      return one;
    }
    Made.prototype = Object.assign(Object.create(parent.prototype), { constructor: Made });
    Made.parts = parts;
    return Made;
  };
  const ast = ($.ast = { AST: Node });
  for (const each of ["expr", "operator", "unaryop", "expr_context", "cmpop"]) ast[each] = node(Node);
  ast.Constant = node(ast.expr, "value");
  ast.Name = node(ast.expr, "id", "ctx");
  ast.UnaryOp = node(ast.expr, "op", "operand");
  ast.BinOp = node(ast.expr, "left", "op", "right");
  ast.Call = node(ast.expr, "func", "args", "keywords");
  ast.keyword = node(Node, "arg", "value");
  ast.Load = node(ast.expr_context);
  for (const each of ["Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow"]) ast[each] = node(ast.operator);
  for (const each of ["USub", "UAdd"]) ast[each] = node(ast.unaryop);
  ast.iter_child_nodes = (of) => of.constructor.parts.flatMap((name) => of[name]).filter((each) => each instanceof Node);
  ast.walk = (of) => {
    const found = [of];
    for (let at = 0; at < found.length; at += 1) found.push(...ast.iter_child_nodes(found[at]));
    return found;
  };

  // --- text to a tree: sums of products of signed powers ---

  const TOKEN = /\s*(?:(\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([\p{L}_][\p{L}\p{N}_]*)|(\*\*|\/\/|[-+*\/%(),=]))/uy;
  const LEVELS = [{ "+": "Add", "-": "Sub" }, { "*": "Mult", "/": "Div", "//": "FloorDiv", "%": "Mod" }];
  const read = (text) => {
    const tokens = [];
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < text.trimEnd().length) {
      const found = TOKEN.exec(text);
      if (!found) throw new $.SyntaxError("invalid syntax");
      tokens.push(found.slice(1));
    }
    let at = 0;
    const sign = () => tokens[at]?.[2];
    const take = (wanted) => {
      if (sign() !== wanted) throw new $.SyntaxError("invalid syntax");
      at += 1;
    };
    const level = (depth) => {
      if (depth === LEVELS.length) return signed();
      let left = level(depth + 1);
      while (sign() in LEVELS[depth]) {
        const name = LEVELS[depth][tokens[at++][2]];
        left = new ast.BinOp(left, new ast[name](), level(depth + 1));
      }
      return left;
    };
    const signed = () => {
      const name = { "-": "USub", "+": "UAdd" }[sign()];
      if (!name) return power();
      at += 1;
      return new ast.UnaryOp(new ast[name](), signed());
    };
    const power = () => {
      const base = atom();
      if (sign() !== "**") return base;
      at += 1;
      return new ast.BinOp(base, new ast.Pow(), signed());
    };
    const atom = () => {
      const [number, name] = tokens[at++] ?? [];
      if (number) return new ast.Constant(/^[\d_]+$/.test(number) ? BigInt(number.replaceAll("_", "")) : Number(number.replaceAll("_", "")));
      if (name && sign() === "(") return called(new ast.Name(name, new ast.Load()));
      if (name) return new ast.Name(name, new ast.Load());
      at -= 1;
      take("(");
      const inside = level(0);
      take(")");
      return inside;
    };
    const called = (name) => {
      take("(");
      const values = [];
      while (sign() !== ")") {
        values.push(level(0));
        if (sign() === ",") at += 1;
      }
      take(")");
      return new ast.Call(name, values, []);
    };
    const tree = level(0);
    if (at < tokens.length) throw new $.SyntaxError("invalid syntax");
    return { body: tree };
  };
  ast.parse = raw(read, ([text]) => read(text));

  // --- names that look alike, as Python's difflib finds them ---

  const alike = (a, b) => {
    let [length, first, second] = [0, 0, 0];
    for (let i = 0; i < a.length; i += 1) {
      for (let j = 0; j < b.length; j += 1) {
        let k = 0;
        while (i + k < a.length && j + k < b.length && a[i + k] === b[j + k]) k += 1;
        if (k > length) [length, first, second] = [k, i, j];
      }
    }
    if (!length) return 0;
    return length + alike(a.slice(0, first), b.slice(0, second)) + alike(a.slice(first + length), b.slice(second + length));
  };
  const near = ([word, names], named) => {
    const { n, cutoff } = { n: 3n, cutoff: 0.6, ...Object.fromEntries(named) };
    const found = [];
    for (const each of names) {
      const score = (2 * alike(each, word)) / (each.length + word.length || 1);
      if (score >= cutoff) found.push([score, each]);
    }
    found.sort((a, b) => b[0] - a[0] || (a[1] < b[1] ? 1 : -1));
    return found.slice(0, Number(n)).map((each) => each[1]);
  };
  $.difflib = { get_close_matches: raw((...given) => near(given, []), near) };
})(readerkitPython);
