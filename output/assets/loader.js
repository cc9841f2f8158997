(async () => {
	const packed = atob(document.getElementById("pysample-page").textContent);
	const stream = new Blob([Uint8Array.from(packed, c => c.charCodeAt(0))]).stream();
	const text = await new Response(stream.pipeThrough(new DecompressionStream("gzip"))).text();
	const [css, html, js] = text.split("\0");
	const add = (name, content) => document.head.append(Object.assign(document.createElement(name), { textContent: content }));
	add("style", css);
	document.body.append(document.createRange().createContextualFragment(html));
	add("script", js);
})();
