// Figures open at their full size when they are clicked, or chosen by the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll("article img")) {
    if (image.closest("a")) continue;
    const link = document.createElement("a");
    link.href = image.src;
    link.className = "figure";
    link.title = "Open at full size";
    image.replaceWith(link);
    link.append(image);
  }
});
